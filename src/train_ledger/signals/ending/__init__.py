"""What does a process still say when it dies?"""
