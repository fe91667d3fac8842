variable "project" {
  description = "The Google Cloud project of the dashboards and alert policies."
  type        = string
}

variable "notification_channels" {
  description = "Who is told: names such as projects/P/notificationChannels/1."
  type        = list(string)
  default     = []
}
