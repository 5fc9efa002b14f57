"""Tables looked up with dynamic indices, and deep branches."""

# mypy: ignore-errors
# ruff: noqa

from basedsl.conformance.cases import program, refused
from basedsl.conformance.programs.truth import Cond, Conv


@program("int", inputs=[(i,) for i in (0, 57, 99, -1, -100, 100, -101)], tags="raise")
def table100(n):
    t = (
        [i * i for i in range(100)]
        if False
        else (
            0,
            37,
            74,
            10,
            47,
            84,
            20,
            57,
            94,
            30,
            67,
            3,
            40,
            77,
            13,
            50,
            87,
            23,
            60,
            97,
            33,
            70,
            6,
            43,
            80,
            16,
            53,
            90,
            26,
            63,
            100,
            36,
            73,
            9,
            46,
            83,
            19,
            56,
            93,
            29,
            66,
            2,
            39,
            76,
            12,
            49,
            86,
            22,
            59,
            96,
            32,
            69,
            5,
            42,
            79,
            15,
            52,
            89,
            25,
            62,
            99,
            35,
            72,
            8,
            45,
            82,
            18,
            55,
            92,
            28,
            65,
            1,
            38,
            75,
            11,
            48,
            85,
            21,
            58,
            95,
            31,
            68,
            4,
            41,
            78,
            14,
            51,
            88,
            24,
            61,
            98,
            34,
            71,
            7,
            44,
            81,
            17,
            54,
            91,
            27,
        )
    )
    return t[n]


@program("int")
def elif100(n):
    x = 0
    if n == 0:
        x = 5
    elif n == 1:
        x = 7
    elif n == 2:
        x = 1
    elif n == 3:
        x = 8
    elif n == 4:
        x = 2
    elif n == 5:
        x = 9
    elif n == 6:
        x = 3
    elif n == 7:
        x = 10
    elif n == 8:
        x = 4
    elif n == 9:
        x = 11
    elif n == 10:
        x = 5
    elif n == 11:
        x = 12
    elif n == 12:
        x = 6
    elif n == 13:
        x = 0
    elif n == 14:
        x = 7
    elif n == 15:
        x = 1
    elif n == 16:
        x = 8
    elif n == 17:
        x = 2
    elif n == 18:
        x = 9
    elif n == 19:
        x = 3
    elif n == 20:
        x = 10
    elif n == 21:
        x = 4
    elif n == 22:
        x = 11
    elif n == 23:
        x = 5
    elif n == 24:
        x = 12
    elif n == 25:
        x = 6
    elif n == 26:
        x = 0
    elif n == 27:
        x = 7
    elif n == 28:
        x = 1
    elif n == 29:
        x = 8
    elif n == 30:
        x = 2
    elif n == 31:
        x = 9
    elif n == 32:
        x = 3
    elif n == 33:
        x = 10
    elif n == 34:
        x = 4
    elif n == 35:
        x = 11
    elif n == 36:
        x = 5
    elif n == 37:
        x = 12
    elif n == 38:
        x = 6
    elif n == 39:
        x = 0
    elif n == 40:
        x = 7
    elif n == 41:
        x = 1
    elif n == 42:
        x = 8
    elif n == 43:
        x = 2
    elif n == 44:
        x = 9
    elif n == 45:
        x = 3
    elif n == 46:
        x = 10
    elif n == 47:
        x = 4
    elif n == 48:
        x = 11
    elif n == 49:
        x = 5
    elif n == 50:
        x = 12
    elif n == 51:
        x = 6
    elif n == 52:
        x = 0
    elif n == 53:
        x = 7
    elif n == 54:
        x = 1
    elif n == 55:
        x = 8
    elif n == 56:
        x = 2
    elif n == 57:
        x = 9
    elif n == 58:
        x = 3
    elif n == 59:
        x = 10
    elif n == 60:
        x = 4
    elif n == 61:
        x = 11
    elif n == 62:
        x = 5
    elif n == 63:
        x = 12
    elif n == 64:
        x = 6
    elif n == 65:
        x = 0
    elif n == 66:
        x = 7
    elif n == 67:
        x = 1
    elif n == 68:
        x = 8
    elif n == 69:
        x = 2
    elif n == 70:
        x = 9
    elif n == 71:
        x = 3
    elif n == 72:
        x = 10
    elif n == 73:
        x = 4
    elif n == 74:
        x = 11
    elif n == 75:
        x = 5
    elif n == 76:
        x = 12
    elif n == 77:
        x = 6
    elif n == 78:
        x = 0
    elif n == 79:
        x = 7
    elif n == 80:
        x = 1
    elif n == 81:
        x = 8
    elif n == 82:
        x = 2
    elif n == 83:
        x = 9
    elif n == 84:
        x = 3
    elif n == 85:
        x = 10
    elif n == 86:
        x = 4
    elif n == 87:
        x = 11
    elif n == 88:
        x = 5
    elif n == 89:
        x = 12
    elif n == 90:
        x = 6
    elif n == 91:
        x = 0
    elif n == 92:
        x = 7
    elif n == 93:
        x = 1
    elif n == 94:
        x = 8
    elif n == 95:
        x = 2
    elif n == 96:
        x = 9
    elif n == 97:
        x = 3
    elif n == 98:
        x = 10
    elif n == 99:
        x = 4
    else:
        x = -1
    return x


@program("int")
def index_list(n):
    return [1, 2, 3][Conv(abs(n) % 3)]


@refused("refers to different Cond objects", "int")
def table_objects(n):
    t = [Cond(1), Cond(2)]
    return t[n % 2].n


@program("int", inputs=[(i,) for i in (0, 1, 2, -1, -3, 3, -4)], tags="raise")
def table_small(n):
    t = (10, 20, 30)
    return t[n]
