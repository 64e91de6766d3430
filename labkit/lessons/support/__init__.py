"""What the lessons share: loops and schedules of a learner, driven on a real engine."""
