# ruff: noqa: F841, UP031, RUF023, B024, RET501, E501  (3.8; its locals are looked at from outside)
"""Objects that notice when any of their code runs. Every local of `boom` is one kind."""

import abc
import array
import atexit
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import os
import pathlib
import re
import tempfile
import types
import uuid

RAN = []


def ran(what):
    RAN.append(what)
    return what


def trap(name):
    def method(self, *args, **kwargs):
        if ARMED:
            ran("%s.%s" % (type.__getattribute__(type(self), "__name__"), name))
        raise RuntimeError(name)

    return method


ARMED = []
SPECIAL = [
    "__repr__", "__str__", "__format__", "__len__", "__iter__", "__next__", "__getitem__", "__contains__", "__eq__",
    "__ne__", "__lt__", "__hash__", "__bool__", "__int__", "__float__", "__index__", "__getattr__", "__dir__", "__call__",
    "__reduce__", "__reduce_ex__", "__sizeof__", "__fspath__", "__bytes__", "__enter__", "__exit__", "__copy__",
    "__deepcopy__", "__getstate__", "__length_hint__", "__missing__", "__instancecheck__", "__subclasscheck__",
    "__array__", "__array_interface__", "__reversed__", "__iadd__", "__add__", "__rmod__", "__mod__", "keys", "items",
    "values", "get", "copy", "bit_length", "tobytes", "tolist", "as_tuple", "isoformat", "utcoffset",
]  # fmt: skip


def trapped(name, base, *leave):
    space = {special: trap(special) for special in SPECIAL if special not in leave}
    space["shown"] = property(trap("property"))
    space["__module__"] = __name__
    return type(name, (base,), space)


class Everything:
    locals().update({name: trap(name) for name in SPECIAL})

    def __getattribute__(self, name):
        if ARMED:
            ran("Everything.__getattribute__ " + name)
        return object.__getattribute__(self, name)

    @property
    def price(self):
        return ran("price")

    @property
    def __class__(self):
        if ARMED:
            ran("__class__")
        return dict

    def __del__(self):
        pass


class Meta(type):
    locals().update({name: trap(name) for name in SPECIAL if name not in ("__call__", "__getattr__", "mro")})

    def __getattribute__(cls, name):
        if ARMED:
            ran("Meta.__getattribute__ " + name)
        return type.__getattribute__(cls, name)

    @property
    def __name__(cls):
        return ran("Meta.__name__")

    @property
    def __module__(cls):
        return ran("Meta.__module__")

    @property
    def __mro__(cls):
        return ran("Meta.__mro__")

    @property
    def __dict__(cls):
        return ran("Meta.__dict__")

    def __instancecheck__(cls, instance):
        return ran("Meta.__instancecheck__")

    def __subclasscheck__(cls, other):
        return ran("Meta.__subclasscheck__")


class WithMeta(metaclass=Meta):
    def __init__(self):
        object.__setattr__(self, "a", 1)


class Deletes:
    def __init__(self):
        handle, self.path = tempfile.mkstemp()
        os.close(handle)
        atexit.register(lambda path=self.path: os.path.exists(path) and os.remove(path))

    def __repr__(self):
        ran("Deletes.__repr__")
        os.remove(self.path)
        return "deleted"


class Hangs:
    def __repr__(self):
        ran("Hangs.__repr__")
        while True:
            pass


class Recurses:
    def __repr__(self):
        ran("Recurses.__repr__")
        return repr(self)


class FakeDict:
    """A property where the instance's dict is expected."""

    __slots__ = ("x",)

    def __init__(self):
        self.x = 1

    @property
    def __dict__(self):
        return ran("FakeDict.__dict__")


class Slots:
    __slots__ = ("x", "unset", "__weakref__")

    def __init__(self):
        self.x = Everything()


class DictOfEvil:
    """An instance whose dict has keys that are no plain text."""

    def __init__(self):
        self.ok = 1
        self.__dict__[trapped("EvilKey", str, "__hash__", "__eq__")("evil")] = 2
        self.__dict__[5] = 3


class Descriptor:
    def __get__(self, instance, owner):
        return ran("Descriptor.__get__")

    def __set__(self, instance, value):
        ran("Descriptor.__set__")


class WithDescriptor:
    field = Descriptor()

    def __init__(self):
        self.__dict__["field"] = "hidden below"

    @functools.cached_property
    def slow(self):
        return ran("cached_property")

    def __getattr__(self, name):
        return ran("__getattr__ " + name)


class Lazy(types.ModuleType):
    def __getattribute__(self, name):
        if ARMED:
            ran("Lazy.__getattribute__ " + name)
        return super().__getattribute__(name)


class Error(Exception):
    def __str__(self):
        return ran("Error.__str__")

    __repr__ = __str__

    @property
    def __notes__(self):
        return ran("Error.__notes__")

    @property
    def args(self):
        return ran("Error.args")

    @property
    def __cause__(self):
        return ran("Error.__cause__")

    @property
    def __dict__(self):
        return ran("Error.__dict__")


class Zone(datetime.tzinfo):
    def utcoffset(self, when):
        ran("Zone.utcoffset")
        return datetime.timedelta(0)

    def tzname(self, when):
        return ran("Zone.tzname")

    def dst(self, when):
        ran("Zone.dst")
        return None

    def __repr__(self):
        return ran("Zone.__repr__")


class Colour(enum.Enum):
    RED = 1

    def __repr__(self):
        return ran("Colour.__repr__")

    __str__ = __repr__

    @property
    def name(self):
        return ran("Colour.name")


@dataclasses.dataclass
class Data:
    number: int
    inner: object

    def __repr__(self):
        return ran("Data.__repr__")

    def __getattribute__(self, name):
        if ARMED:
            ran("Data.__getattribute__")
        return object.__getattribute__(self, name)


class Named(collections.namedtuple("Named", "x y")):
    def __repr__(self):
        return ran("Named.__repr__")

    x = property(lambda self: ran("Named.x"))


class Abstract(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return bool(ran("__subclasshook__"))

    def __repr__(self):
        return ran("Abstract.__repr__")


class Mapping(collections.abc.Mapping):
    def __getitem__(self, key):
        return ran("Mapping.__getitem__")

    def __iter__(self):
        ran("Mapping.__iter__")
        return iter(())

    def __len__(self):
        ran("Mapping.__len__")
        return 1


class Proxy:
    """Answers for another object, as lazy ORM relations do."""

    def __getattribute__(self, name):
        if ARMED:
            ran("Proxy.__getattribute__ " + name)
        return getattr("text", name)


class Default(collections.defaultdict):
    def __missing__(self, key):
        return ran("Default.__missing__")


class Int(int):
    def __repr__(self):
        return ran("Int.__repr__")

    __str__ = __format__ = __index__ = __int__ = __repr__

    def __eq__(self, other):
        return bool(ran("Int.__eq__"))

    def __hash__(self):
        return 5


class HashedKey:
    def __hash__(self):
        if ARMED:
            ran("HashedKey.__hash__")
        return hash("number")

    def __eq__(self, other):
        if ARMED:
            ran("HashedKey.__eq__")
        return False

    def __repr__(self):
        return ran("HashedKey.__repr__")


def generator():
    yield ran("generator")


async def coroutine():
    ran("coroutine")


def boom():
    everything = Everything()
    with_meta = WithMeta()
    meta_class = WithMeta
    deletes = Deletes()
    hangs = Hangs()
    recurses = Recurses()
    fake_dict = FakeDict()
    slots = Slots()
    dict_of_evil = DictOfEvil()
    with_descriptor = WithDescriptor()
    lazy = Lazy("lazy")
    error = Error("in a local")
    zoned = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=Zone())
    colour = Colour.RED
    data = Data(1, Everything())
    named = Named(1, Everything())
    abstract = Abstract()
    mapping = Mapping()
    proxy = Proxy()
    default = Default(list, a=1)
    number = Int(7)
    keyed = {HashedKey(): 1, "number": 2}
    evil_set = {HashedKey()}
    sub_dict = trapped("SubDict", dict)(a=Everything())
    sub_list = trapped("SubList", list)([Everything(), 2])
    sub_tuple = trapped("SubTuple", tuple)((1, Everything()))
    sub_str = trapped("SubStr", str)("text")
    sub_bytes = trapped("SubBytes", bytes)(b"data")
    sub_bytearray = trapped("SubByteArray", bytearray)(b"data")
    sub_float = trapped("SubFloat", float)(1.5)
    sub_complex = trapped("SubComplex", complex)(1j)
    sub_set = trapped("SubSet", set)([1])
    sub_frozenset = trapped("SubFrozenSet", frozenset)([1])
    sub_deque = trapped("SubDeque", collections.deque)([1, 2])
    sub_ordered = trapped("SubOrdered", collections.OrderedDict)(a=1)
    sub_counter = trapped(
        "SubCounter", collections.Counter, "get", "items", "__missing__", "__contains__", "__getitem__", "__iter__"
    )()
    sub_array = trapped("SubArray", array.array)("i", [1, 2])
    sub_path = trapped(
        "SubPath", type(pathlib.PurePosixPath()), "__hash__", "__eq__", "__str__", "__fspath__", "__bytes__"
    )("/a/b")
    sub_decimal = trapped("SubDecimal", decimal.Decimal)("1.5")
    sub_fraction = trapped("SubFraction", fractions.Fraction, "__eq__", "__hash__")(1, 2)
    sub_uuid = trapped("SubUuid", uuid.UUID)(int=5)
    sub_date = trapped("SubDate", datetime.date)(2024, 1, 2)
    sub_delta = trapped("SubDelta", datetime.timedelta)(1)
    sub_error = trapped("SubError", ValueError)("message")
    sub_module = trapped("SubModule", types.ModuleType)("m")
    sub_partial = functools.partial(Everything(), Everything(), token=Everything())
    method = everything.price.__class__ if False else types.MethodType(ran, everything)
    generator_object = generator()
    coroutine_object = coroutine()
    view = sub_dict_of(everything).keys()
    values = sub_dict_of(everything).values()
    mapping_proxy = types.MappingProxyType(mapping)
    dict_proxy = types.MappingProxyType({"a": everything})
    pattern = re.compile(
        trapped("PatternText", str, "__hash__", "__eq__", "__len__", "__getitem__", "__iter__", "__index__")("a+")
    )
    match = re.match("a+", "aaa")
    namespace = types.SimpleNamespace(a=everything)
    odd_range = range(10**30)
    odd_slice = slice(everything, None)
    memory = memoryview(sub_bytearray)
    bound_builtin = sub_list_append(everything)
    ARMED.append(1)
    raise Error(everything)


def sub_dict_of(value):
    return {"a": value, HashedKey(): 1}


def sub_list_append(value):
    return trapped("Appended", list)([value]).append


KINDS = boom.__code__.co_nlocals


def after():
    del ARMED[:]
    return {"ran": [str.__str__(what) for what in RAN], "kinds": KINDS}


boom()
