"""How do lines leave the training thread, and come whole into a file?"""
