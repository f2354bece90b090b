"""Messages of ROS 2 as DDS carries them."""
