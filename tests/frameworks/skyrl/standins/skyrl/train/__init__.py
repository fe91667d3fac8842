"""SkyRL's trainers."""
