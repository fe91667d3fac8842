variable "project" {
  description = "The Google Cloud project of the dashboards and alert policies."
  type        = string
}
