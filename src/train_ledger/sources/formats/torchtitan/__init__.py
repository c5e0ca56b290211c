"""What does torchtitan print, and write into its structured logs?"""
