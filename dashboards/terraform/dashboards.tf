resource "google_monitoring_dashboard" "rlotel_checkpoints" {
  project        = var.project
  dashboard_json = file("${path.module}/../cloud-monitoring/checkpoints.json")
}

resource "google_monitoring_dashboard" "rlotel_fleet" {
  project        = var.project
  dashboard_json = file("${path.module}/../cloud-monitoring/fleet.json")
}

resource "google_monitoring_dashboard" "rlotel_gpus" {
  project        = var.project
  dashboard_json = file("${path.module}/../cloud-monitoring/gpus.json")
}

resource "google_monitoring_dashboard" "rlotel_learning_health" {
  project        = var.project
  dashboard_json = file("${path.module}/../cloud-monitoring/learning_health.json")
}

resource "google_monitoring_dashboard" "rlotel_overview" {
  project        = var.project
  dashboard_json = file("${path.module}/../cloud-monitoring/overview.json")
}

resource "google_monitoring_dashboard" "rlotel_where_the_time_goes" {
  project        = var.project
  dashboard_json = file("${path.module}/../cloud-monitoring/where_the_time_goes.json")
}
