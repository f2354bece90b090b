"""One controller a file, found by entry points of group rtmms.controllers; template.py is where a new one begins.

They use rtmms's public face alone, as a third party's do. Import name: rtmms_controllers.
"""
