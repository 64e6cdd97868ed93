"""The page that shows a program: its shardings, why they are so, what they cost; and the same for Model Explorer."""
