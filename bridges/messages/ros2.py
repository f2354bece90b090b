# mypy: disable-error-code="misc, call-arg"
"""ROS 2's messages as DDS types: names, fields and final extensibility as rosidl makes them; needs cyclonedds.

They follow the .msg files of common_interfaces, rcl_interfaces and geometry2, which are the same in every distribution
from Foxy on.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import array, float64, int32, sequence, uint32

T = TypeVar("T")
ZEROS_9 = (0.0,) * 9
ZEROS_36 = (0.0,) * 36


@dataclass_transform(field_specifiers=(field,))
def message(cls: type[T]) -> type[T]:
    """Return a class of fields as a message with exactly these members.

    Parameters
    ----------
    cls : type[T]
        The class.

    Returns
    -------
    type[T]
        The message class.
    """
    return final(dataclass(cls))  # type: ignore[no-any-return]


@message
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    """ROS 2's builtin_interfaces/Time.

    Parameters
    ----------
    sec : int32, default 0
        Whole seconds.
    nanosec : uint32, default 0
        Further ns.
    """

    sec: int32 = 0
    nanosec: uint32 = 0


@message
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    """ROS 2's std_msgs/Header.

    Parameters
    ----------
    stamp : Time, optional
        Time of the data.
    frame_id : str, default ''
        Frame of the data.
    """

    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@message
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    """ROS 2's geometry_msgs/Vector3.

    Parameters
    ----------
    x, y, z : float64, default 0.0
        Components, in the unit of the message.
    """

    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@message
class Point(IdlStruct, typename="geometry_msgs::msg::dds_::Point_"):
    """ROS 2's geometry_msgs/Point.

    Parameters
    ----------
    x, y, z : float64, default 0.0
        Position, m.
    """

    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@message
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    """ROS 2's geometry_msgs/Quaternion.

    Parameters
    ----------
    x, y, z, w : float64, default 0.0
        Components of the quaternion.
    """

    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@message
class Pose(IdlStruct, typename="geometry_msgs::msg::dds_::Pose_"):
    """ROS 2's geometry_msgs/Pose.

    Parameters
    ----------
    position : Point, optional
        Position.
    orientation : Quaternion, optional
        Attitude.
    """

    position: Point = field(default_factory=Point)
    orientation: Quaternion = field(default_factory=Quaternion)


@message
class PoseWithCovariance(IdlStruct, typename="geometry_msgs::msg::dds_::PoseWithCovariance_"):
    """ROS 2's geometry_msgs/PoseWithCovariance.

    Parameters
    ----------
    pose : Pose, optional
        The pose.
    covariance : array[float64, 36], default ZEROS_36
        6 x 6 by rows: x, y, z, and rotations about them.
    """

    pose: Pose = field(default_factory=Pose)
    covariance: array[float64, 36] = ZEROS_36


@message
class Twist(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    """ROS 2's geometry_msgs/Twist.

    Parameters
    ----------
    linear : Vector3, optional
        Velocity, m/s.
    angular : Vector3, optional
        Angular velocity, rad/s.
    """

    linear: Vector3 = field(default_factory=Vector3)
    angular: Vector3 = field(default_factory=Vector3)


@message
class TwistWithCovariance(IdlStruct, typename="geometry_msgs::msg::dds_::TwistWithCovariance_"):
    """ROS 2's geometry_msgs/TwistWithCovariance.

    Parameters
    ----------
    twist : Twist, optional
        The twist.
    covariance : array[float64, 36], default ZEROS_36
        6 x 6 by rows: x, y, z, and rotations about them.
    """

    twist: Twist = field(default_factory=Twist)
    covariance: array[float64, 36] = ZEROS_36


@message
class Odometry(IdlStruct, typename="nav_msgs::msg::dds_::Odometry_"):
    """ROS 2's nav_msgs/Odometry.

    Parameters
    ----------
    header : Header, optional
        Time and frame.
    child_frame_id : str, default ''
        Frame of the twist.
    pose : PoseWithCovariance, optional
        Pose in the header's frame.
    twist : TwistWithCovariance, optional
        Twist in the child's frame.
    """

    header: Header = field(default_factory=Header)
    child_frame_id: str = ""
    pose: PoseWithCovariance = field(default_factory=PoseWithCovariance)
    twist: TwistWithCovariance = field(default_factory=TwistWithCovariance)


@message
class Imu(IdlStruct, typename="sensor_msgs::msg::dds_::Imu_"):
    """ROS 2's sensor_msgs/Imu.

    Parameters
    ----------
    header : Header, optional
        Time and frame.
    orientation : Quaternion, optional
        Attitude.
    orientation_covariance, angular_velocity_covariance, linear_acceleration_covariance : array[float64, 9], optional
        3 x 3 by rows; -1 first for unknown.
    angular_velocity : Vector3, optional
        Angular velocity, rad/s.
    linear_acceleration : Vector3, optional
        Specific force, m/s2.
    """

    header: Header = field(default_factory=Header)
    orientation: Quaternion = field(default_factory=Quaternion)
    orientation_covariance: array[float64, 9] = ZEROS_9
    angular_velocity: Vector3 = field(default_factory=Vector3)
    angular_velocity_covariance: array[float64, 9] = ZEROS_9
    linear_acceleration: Vector3 = field(default_factory=Vector3)
    linear_acceleration_covariance: array[float64, 9] = ZEROS_9


@message
class JointState(IdlStruct, typename="sensor_msgs::msg::dds_::JointState_"):
    """ROS 2's sensor_msgs/JointState.

    Parameters
    ----------
    header : Header, optional
        Time and frame.
    name : sequence[str], optional
        Names of the joints.
    position, velocity, effort : sequence[float64], optional
        Values of the joints, in rad or m, rad/s or m/s, N m or N; empty for unknown.
    """

    header: Header = field(default_factory=Header)
    name: sequence[str] = ()
    position: sequence[float64] = ()
    velocity: sequence[float64] = ()
    effort: sequence[float64] = ()


@message
class Clock(IdlStruct, typename="rosgraph_msgs::msg::dds_::Clock_"):
    """ROS 2's rosgraph_msgs/Clock.

    Parameters
    ----------
    clock : Time, optional
        Simulated time.
    """

    clock: Time = field(default_factory=Time)


@message
class Transform(IdlStruct, typename="geometry_msgs::msg::dds_::Transform_"):
    """ROS 2's geometry_msgs/Transform.

    Parameters
    ----------
    translation : Vector3, optional
        Translation, m.
    rotation : Quaternion, optional
        Rotation.
    """

    translation: Vector3 = field(default_factory=Vector3)
    rotation: Quaternion = field(default_factory=Quaternion)


@message
class TransformStamped(IdlStruct, typename="geometry_msgs::msg::dds_::TransformStamped_"):
    """ROS 2's geometry_msgs/TransformStamped.

    Parameters
    ----------
    header : Header, optional
        Time and frame.
    child_frame_id : str, default ''
        Frame of the result.
    transform : Transform, optional
        The transform.
    """

    header: Header = field(default_factory=Header)
    child_frame_id: str = ""
    transform: Transform = field(default_factory=Transform)


@message
class TFMessage(IdlStruct, typename="tf2_msgs::msg::dds_::TFMessage_"):
    """ROS 2's tf2_msgs/TFMessage.

    Parameters
    ----------
    transforms : sequence[TransformStamped], optional
        The transforms.
    """

    transforms: sequence[TransformStamped] = ()


@message
class MultiArrayDimension(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayDimension_"):
    """ROS 2's std_msgs/MultiArrayDimension.

    Parameters
    ----------
    label : str, default ''
        Name of the dimension.
    size, stride : uint32, default 0
        Its size, and its stride in the data.
    """

    label: str = ""
    size: uint32 = 0
    stride: uint32 = 0


@message
class MultiArrayLayout(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayLayout_"):
    """ROS 2's std_msgs/MultiArrayLayout.

    Parameters
    ----------
    dim : sequence[MultiArrayDimension], optional
        The dimensions.
    data_offset : uint32, default 0
        Numbers before the data.
    """

    dim: sequence[MultiArrayDimension] = ()
    data_offset: uint32 = 0


@message
class Float64MultiArray(IdlStruct, typename="std_msgs::msg::dds_::Float64MultiArray_"):
    """ROS 2's std_msgs/Float64MultiArray.

    Parameters
    ----------
    layout : MultiArrayLayout, optional
        Layout of the data.
    data : sequence[float64], optional
        The numbers.
    """

    layout: MultiArrayLayout = field(default_factory=MultiArrayLayout)
    data: sequence[float64] = ()
