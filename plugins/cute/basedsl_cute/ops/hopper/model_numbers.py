"""The numbers of `ops.hopper.model`, as bench/gpu/fit_choice.py found them from
31724 timings of 2532 products on an H200.
"""

# fmt: off
PHYSICAL = {
    "clock": 1.45e+03,
    "sharpness": 4.13,
    "uneven": 0.304,
    "later": 2.61,
    "alone": 0.34,
    "one_consumer": 0.977,
    "turned": 0.67,
    "crooked": 0.516,
    "split_by_2": 0.414,
    "split_by_4": 0.0122,
    "split_by_8": 0.0282,
    "along_n_2": 0.134,
    "along_n_4": 0.0417,
    "along_n_8": 0.611,
    "along_m_2": 0.202,
    "along_m_4": 0.00153,
    "along_m_8": 0.02,
    "arriving": 128,
    "edge": 0.351,
    "from_l2": 127,
    "l2": 17.8,
    "empty": 0.0547,
    "memory": 4.09,
    "promotion": 1.02,
    "latency": 0.647,
    "of_each": 0.09,
    "again": 0.272,
    "last": 2.53e-05,
    "stored": 0.0306,
    "narrow": 0.231,
    "by_warps": 0.861,
    "partial": 0.97,
    "summed": 0.0593,
    "exchanged": 0.273,
    "begin": 1.67,
    "begin_persistent": 0.00105,
    "room": 0.00503,
    "split": 0.206,
    "block": 0.00198,
    "cluster": 0.0595,
    "adding": 0.994,
    "added": 4.95,
}
MEANS = (
    0.644, 0.144, 0.0368, 0.282, 0.521, 0.0548, 0.096, -0.505, 0.375, 0.342, 0.232, 0.19, 0.113,
    0.0455, 0.807, 0.234, 0.146, 0.115, 0.199, 0.0315, 0.106, 1.24, 0.785, 0.617, 0.805, 0.123,
    1.1, 1.17, 0.975, 1.05, -0.0788, 0.839, 0.73, 0.343, 1.46, -1.43, -1.25, -2, -1.71, -2.1,
    3.74, 0.373, 0.253, 0.197, 0.197, 2.37, 2.33, 0.808, 1.87, 0.437, 0.659, 0.171, 0.184, 0.114,
    0.0521, 0.279, 0.0179, -1.4, 0.0396, 0.0317, -0.051, 0.253, 0.265, 0.0209, 0.032, 5.24, 0.968,
    5, 0.463, 1.78, 2.92, 2.86, 0.213, 0.25, 0.0599, 0.047, 0.00782, 0.0193, 0.0664, 0.0258,
    0.0571, 0.0196, 0.337, 0.0534, 0.0786, 0.0686, 1.58, 0.421,
)
SCALES = (
    0.48, 0.352, 0.189, 0.76, 0.632, 1.53, 0.306, 1.14, 0.634, 0.66, 0.423, 0.393, 0.439, 0.209,
    0.396, 0.424, 0.354, 0.32, 0.543, 0.176, 0.362, 0.37, 1.23, 0.487, 0.271, 0.854, 0.874, 0.84,
    0.862, 0.791, 1.51, 0.368, 0.445, 0.476, 0.637, 1.05, 0.983, 0.602, 0.699, 1.11, 1, 0.485,
    0.436, 0.366, 0.438, 0.829, 1.03, 0.311, 2.46, 0.497, 0.475, 0.377, 0.389, 0.382, 0.249,
    0.449, 0.134, 0.679, 0.196, 0.176, 0.308, 0.427, 0.437, 0.144, 0.177, 0.132, 0.192, 2.35,
    0.278, 0.927, 0.479, 0.391, 0.41, 0.434, 0.238, 0.213, 0.0891, 0.138, 0.25, 0.159, 0.233,
    0.14, 0.474, 0.226, 0.27, 0.254, 7.94, 1.46,
)
EXTENTS = (88, 24, 16, 1)  # inputs and outputs of each layer
# Of each network and layer the weights of each input and the biases, as 16-bit floats.
NETWORKS = (
    (
        "rjPALPSteq48KH4pCKycqJgl+aoPKqCigDFKrH4b9SrRryQo+iwnpYGs8TC0qXirAjDCJoosx7FDMBscAK4IsVkd"
        "+iqvKzwqMicMpPesObCnsO+muS/BNKevmamlLnKfgqQLKNsv3C24sIMwhS73sEuf06yGq8QpNy2kKo4qSa/FscAs"
        "xSmaNAeuarANsv0kg6yPL96zkrK2LNa1UK2xLaQw/C1lLtcxSCl5KDcwBzBnreAxHTDKJMqrVyzZrDqqHJ7yMVUx"
        "DSvULcayI7RVsAS27jCaLags2q5aKkYunK0TsD0wDaDzrCCyUKu/s2+jArK6qIit3Kp/Lu2rzLEbNimoRa6oq5Ew"
        "CySMsOOt8aRIIEQyLa60rnSyex5To1GvsyoOqycpbCebFxi5lqmLMl8k/CyqqHun4SyHLRg01CgWK/moyLHaK3Qw"
        "bCyXL2KlWigdMDMkNqy9KI6wHqI5r0AwPS7MsmwpFDKHrvavGK9zo1Y0IzNls1W0n62qojgvnAvfKRYwW69ApC+y"
        "bbDZrpew4i7Kqg8ts65brE+lAaBbMN8uU66ar/6oejESqukr+S07KJYt7CaBrKyvXa4nKfGsJiOmoz4trK4gpTIv"
        "2iIurFUqUqvRsEe0+ZjrLQWrTSUQLQolbbBnoOKtbq+bqCUnZi0JshqxdqnNM58rTy/gKesxeC6UI1qsLTDqqlAw"
        "NjHBrEcs6KgKKnEr+CsSLkunDa/pJQIudK9Rt/qm6CxBLl0xCrFrtdYsXjFVLecwN682IryuvjDIMHSr2Ceyr0Ss"
        "ECn4rMQpWCU2qOYp3DCWMJ+ehK3CoSMwdajTLCOrKiSKJJGsrqs+KgsxQay/JiesJaYiMgeZ2C+3qZCtFKnzKtii"
        "BjB/sHeyn6CUoSGrayfyJLes0axtJUovsyaILrCr+ye1puqtLZuvrQCt7Cmhr/isfqZAKPYkeSfeqCokqCyfKZ6q"
        "BZTcKMQw9quoJ0mkAi4HJsmtZSyIpCykNyzeqY2m8a1QKVYoOCrArFwIkJq9pnKlwyytL3Qj9aERLCAgSS4SLvow"
        "mSxGL7wyPi+3L42vXae1tVgwxCSHL2okhaSxJkwoxKrvoqWoey5OLLurJKt6q60pcrF5KGkjzazsqXQetC3jLx4b"
        "q6QUJ/MozLBatv21c6mMpq6y87KUNFevyCD+Lmqw9Si0KgguvSztL4kzrSwjqK4vuin7LEQu4bGDtOmoBaidshSp"
        "laZvsAio66tyKKa0lSypqmKiu6gNMmwrpKyLrc4yKSx5sRgxbTN5GsOYRbE0KiYvzS+mtZyybrWjsVW0RyqXMogu"
        "0K8yoWkyAKuxLAcrgq1tsKYzDrGNNKI1PDB3JvQtFzSntQkbDbSOKIWo3bPusl6xnavgsJ20CLHoMjiwiLD7qn+i"
        "oDGBMd8wjy8VIGY2ULH0KkqxKDRYrU8osK91LQkwgrMrrbgtcDDKNNMz1zT/tGA15qTHscKzQqapKUyuWqTbLFyq"
        "fy1qMWkxmiUAL1U0ZbGvMGIsJCUVNHwoqK1ZMp+nua1CK/utFbNmIQe4+i9HsbyuU7CsLFOwrrJ1rCmkUSzFrtI2"
        "Q7O4Hvar67G3Lduwhh67LCEwUrDCMnGsCa1NssyzQC17rnqwuTDWsaGsNrIsrKIyO6yKKQIwES0sNG+vI7BuH5qY"
        "QK26K2aw+iQhqsmvEi1HsDecoiqktBoscC4Wr+ovFLOzM9QnBapZraOuJ6cZLc6rjCfeMJ8bFCO7KvcugyvRp+yr"
        "kKYkMGkr1rKskPusRSYbsBazGqkbKvYqo7HJqlOogSJLnW6xsyMCswCwBi+Lr0Ko6SzEtNStZCduroouprM8NZcn"
        "Vqxpp5auByjEMawpTB6dLPYrFiTkLtEloqjcG0Gu1Sp1JJ2kL61wqFIf5ymMsRmsHKSzr+wjN693rquiSqflqSWs"
        "Dyx4sS2wAS2BqXMf8SuxsU4tUyqTsImi1rCFNMYvJK3PoVCuSRhVrk2oXLBzrWOqL6yYLHctMi5hroSrVyzbLDaw"
        "0y0SI4atES4Kp1qvTBkdnoGtGilwKPwxi6SSp7IufzAvKwOofqxcql4tErDHrEsrW6HtrBQk06R2M/mvtyogp04s"
        "AbIYIxaldC8eKzaxpyySLM6t454TsQAky7CyLC+qIScjMaAijK3/q/ok1alxqUArWrXiMAUkVC0FMUYqq62QMkOw"
        "0KuDpc6d/bbIsjCxrrTFsDyO8rI/L1ys5i01p/60MjWwtDwxLC1lsl+xVDM+LuCwnbFor/az9S3ZJDA06ihTKCGh"
        "RiwZtKQx16uvLW02DK1wtAE24jPAIKgusLEpHDGoHzUDp5UvjrJ6JhMu9LGEqmwuOipEMOioLip1rfQtzjMUqR0w"
        "KDWqKoM47jRFIzc0IzBtrf8wgLCFLaguTS2qLjwppq7AKmmvEbY0tq4uZTHxLra2aKHeOBQ0zyjvsx4shjCcMCSk"
        "CbJSNZY005/dMjo4QDTwMj6vXzPDsW+h9ynDtOwtGrIbNKe0FjTMs9+n+7FaquiyBTQqtYUtoyxMKLsy4a6UsfSm"
        "87byqfqv5LGBsCa1PLRbtJu5ACjhM02tE7aNsq6sxjSdrFS1ZC14pGwqEbTDt+4uVq2kNbG1gyfKLNovdo/ZpMOl"
        "EKy5Hjst4iQNJF8w3iZjFhKvxqwPIu4oJCu5KTWp1ph9rCkqAzE/LpGrBaZkrZKoOzAOKEYX86qqKUkl6y5hr4iu"
        "dq/4Kz+lhCwgnNmlTrCxqMCvvLWQsIytVaQAKWcxdq1gsownhalBsl0wSaGEKzovMzB/q0kvFCqsLH4rLKxbq4Qu"
        "KK1BKnSn+q5iKp2xOTC4rZI0TKhDobYxZy6uMNSsWizvr3UrBysnGT2pxixosFsupzCVMT8w1xH3tG+uFDC8mD6z"
        "ZSUlr0evijBcrZGmKCpvNMWxhbhiNPOeiayfoEKwKyyWM+wjb6xRqpwmjqXZMCyvgqo9qv0bgy0zKVqcI62BL9Yj"
        "qKYGrkWylK1kJiyqwSvkIg0o56oxNG8sTy5OqDAxqSwzrkUffDRcNBIyYzBMqUY01y5FtayuD6c8LXMwmazvr/ip"
        "kjFwph4pNKwhM5QcqSxwM8SnXq5EKbOsbrIHqcWrAabrKj4ycyIIMTuj0Kz9JakuBa3nqHo0YjDPr70xe6a2M4ks"
        "wyz3Kwe0MjClr2AoQrFyqUU1oZgzrQ8ooamQp4giQi13pIke7a2qpT0wLqUqLaOoArFJqhOtWrCBLKak06wsJX0w"
        "6p3sL72ouyEzrPAvLjHFKFmqwabNLryzNSlRLyIs17FlrjMtaiyhM16wsyzCr2IxYyXfHU2tJywXKdMqdyY+LWAk"
        "g5TvLRgwTCp6oxwxtSqnrdYvRSRxqauYKDQjIh8fcS/GLYSpmSUoKyspnZhGqesu5rDlLJcuJzCHMDymPyydKF+y"
        "2qg7pEGe6CUvresyx6MTK1mtfaUWIzGp8iHtI88YSh4sJwAkR6G3n4WnmSuTMSOrJ6qOqqmsI7AQr7qrKKijKIIs"
        "f6x9LYEqui7WJx8wwyjWsVOtU4IoKFekH6cspPcisyz3qIGp+iw3qj8rlp7Io5CpFSvwKWgoKiKoKRWeoagtL9gs"
        "kiisrHYdTrCwJrGq155CJJ6o2q/psKGogSuRJu8qsSqhMi4pNiJ6qkQyN7BxIkstci0VMOWlRazTLd2u5K2mMgUx"
        "P6/cMgKxy62XrYMqtClFKOCkNa0JKmcc5y5SLIel9aXOKM2rPSpZNDMxdy12suwsA7HKsO0ndafRKjAniSEzrmGp"
        "zyf3qUeq+yg5KAoq3yhqLe8vxLB9rNGkgrA+qx0reC6FNAysvim0LpKkmqz3tbmwRrMFFL43c6R3KfeqcjBEoGKw"
        "bjD/KlEqtiypM+Srk6UcsVavpyxmLAMcQjCSKmco3zWpsIc5H6lYMgwtti7VsxYzlLTkMy0adpxLqBi0lzMLNa4s"
        "VzMnt18vEyresYUwiDU5s+c5XbBCNIkuYjKGs8UyKLTOM8ioJyt3IC2z8TKVNDSiCzGXuDcpZaomqPWp0CqKtdIy"
        "ECmhrL6oPi4Os8a4da7JraeyaC9brvetgjETtu4o2S0tr4esMyxnLwQtvBlAq7E1/jCSLNs1MyyCLjKvYqhlLaKt"
        "mCzFsYWkQzGsG3G0ibDCsgSrrC42tSq0b7CgLIm3tC6CMkyafK24rbwoTK66Iw8sizFMMAoKb7AAtSGwDi27LTuk"
        "wjJZLf2wEa09GMowvCrQJ5ozX68ctCspNjFJMl0vXDKPrEQxJy+XMEovtjHHL1MoErIGre4uJi2RLziiu5dmM2K0"
        "e7E3tCUf0rVcsS2y7rUesOiwf7HWLB4w/zNPLkOzULEBK6ChObbgr566aiy8NCexxDT0taQqH7DSrzEzwzD1tTIp"
        "HLKUNwK06ysiNiCq8jTuOh4g8KwetaSsmTEIN+S2bDHJsYqp1jVgJMWxBa3NN7m1c6//MNunEKiIK0K13K+qMG0U"
        "7DM4szi0xzimtBqvnbO+suezfycKI7clUZTZqSyzgKzzryq4gbIVM9KxzqxZNXMycRRLnmuxuS1XrrilK7Q0tmQy"
        "3KjpNDkw5BvxJei0EKjlrQaq06gOMtGxprCtsuagWDQCsJe027IrK8Uw/SgOrJEt7yWYLe2pnBrLJGyxV7QdKhyx"
        "9abHsNWhzS+tJv8tazIcK7agfqpZskesSCQ4Iv4p9qyrMZ4s+jKUKvWt9araNHSujiAEKHMoyS1VsJkwhSnlqkew"
        "P66SMEugcS1cLyssrKhqsrGpr6WmL+CkKp/XrBYuIy0tr1adliQIMJMuvyu1JsilXJCnLu6rTytOrw8oYa6GqL6k"
        "IKz8qE6wL6LHqX+w4yroKsUsurIeHogh2yMpJzSmcbArj/QqJyV8LdGgx6YbJ6UoIKUGKaOsRa+HsvWoSChLHWKw"
        "HrfyseafYy26rNQpa6x7MdAdpS2mqO2qYy3RMLUsDK90sK+tWh+0sKW3S6idLjmxratTqc2k+ilwMCanArA7rXWu"
        "9a2HKDWic68fohotlDAXNH2jTayWtZuzhqmdM4WjoqsOrWKl+6klMJWtMK8gm5sVELHBo7wtGq9iI6QlSTBCM5Ws"
        "dCwZskWxKKX5MeuqZ65WqNwtpy4RsIA0wDCDLIW1tKwzLp62BKzErAomcq4greCq8zEPNCgw3BXbrPEtDq7Qq+yg"
        "PC/VKIY0DypQp7ustihkq3kuQCwhLrGttjF7LQSqtK3cteGnbyxjrBoury6/Le6gfDQ4K1myZKjmrtYirK3LqQqv"
        "mqp0MUmuzJrKrXUuda9rsRCvMab4rQEvnaowM1QvSDFSLKsyza0HsTKvxS1eJgWoeasYLmC0q66DJJQUHzGCrYac"
        "m6DQrXotEqPjrMmpV5RjqPeuixhKH2MviCx9oLUqMibMIhuqEKnrHGUgDasBqIWokaFKnnapS6M0ohKrvS2WK4+y"
        "JafLJzowXyx6rLQnhjFMsSWqSisQrb4eLysTK70c7S5Arn0dfiGUtBi3xrEfpX8vwq7KqxGvPaRmqWylXCzvKhAq"
        "7y6NMPOx9qt6NCQq3aXiKzKtrrERrUoofCRGKNykqyyEMK8qLqBoJEctTivdJcujaiawL5cSqaizoN4uNyEBKRWs"
        "uiDqNGCqIhXEr2q2iy7RLIK1V65QtTaqdrCUrs0tpSq/MwO2MqDFLLs3mDInsUK0RTP9MUUsSKvXMCIkrSwXsP6u"
        "ai81sK0wLjQNKeW06TMZtvOviy9YsD60Wa+0rL+zxKtXseW3GB9Mr5atB63wrh80orSHs04wFLK7s40tUTP4q/qs"
        "FzFptdyzwSmbs6qxhyH7LKOnyCkqMMIrga0vs8Gz4inMLmExNq1mqqy2ny8QMd0p87FcsWI1OjCmp1Q345cKM8c5"
        "47QSNHImhTTLL5cqqLAsrBOqCjL9r9Sxuy9csYMqeqd/E+6rs7bAuQMsl7GULOWxFaYQMbExt7RRj1Kih6ivp2Wf"
        "Py4wM9OzZ6rdtMut7SzBNIMqxiUaMT8zmDBSML+0NKc0tmaysDQBKOYqWKwhrjMu46gINeas8KEoL2qtFTHmsBQe"
        "prQlMPehGjM8LwEwUbPFs2QwpzDBNkgx1JKCMB+sxCZ9MFGyr7OwM562RzRJJtW4WjQPNIGz2yR9tK6iTbNMpU8w"
        "xDD5MduvHLRyrW6tW6AmLeYdAqRpsYyuybUpNTY0Z7BbLPMxIq1wMwewJTR9rVmtWTKDLVItSrF2s1Mt1S3JrdCw"
        "0LLar+YyL7XYpSkyebKMKCe0WbBKKQmrG6itKDSnfLAaMnYzACGmsECl+yi/MuI0E7IEL4yzhjESKJ8q5ypgNSUo"
        "7y/kJUSvmq8dIjEqiCtqq9kzZCWCsLWy0aRKpjo0ZiuunX0vB5/RqnioGKv3rZOuwyKxNC22r6ygMMUuTLTWMW+s"
        "Y6xDNOiyXrE3MsctMTjfNs+u3zT4MLkwGTQ7MaMp/zFHMPI1EjSAqZAyFTCUpHYsTq34LTO0Ny7Ytxq5KrCyriew"
        "BzF0s+MxiTMBq9Qp0ilQtb+wKC8Lst0pOi22sCowYDCdrOY0mzIiKgWzirYnLB8x1S9vL/Gv9rJUKBcpvLWorL0j"
        "7yQkNI+0XrGAtRmoPzABtl+uazEVqikpSayQtccmm6RHrRMs1KYgsdmt6K4ps9exMLAetP2vTLWAoW8wz6A3JHEu"
        "FiNSsg042DN8E8k08S6IJRS1Aq9ftAaxN6eNKiWyh66SMNuyIzAlqyeuWaHGqw+uiRgkJm2d9LDAL/mv3K8or4Os"
        "YjAfMSMyeTEiMCA1oLIJskGwzDLqrJ4u"
    ),
    (
        "DSyZsr8bKyW2p0GhQa7gMLYoECppodgv9Sk8qkkuJ7D7LKQwRyBzEpSkm7EcLFqkBauuN0yp2q2RLRowKKaSr00s"
        "WqCsn+Kae6xAKqey7618II8UrSialwGlfKpGMs2wurG3Kqsx854vqbyt65vmKJEuBK6RId2lpDXGph0spTExorol"
        "ULDXsPasgy7gtA208iKKsvwtaKPFM80r1i61L4Q0PzBjGkybZ6+nrNuuxDI8L/KxCSnrM4Yv2yhltHEqNrM4NWMx"
        "aC/SqSIu8SYpL2cti6shNPixR7EUsSm297BaMqyx5y5jrjKqyS0gKy0dNixdMymxQqxVNeKvUyxisXawGaxjsmCw"
        "DS0+sJ2ycjIusBonojQYKPyv8DSVrgGsrS5TssExiCNxrAinOiyxJzeuVqTUpiUoHLB2LL0xQLRiK2UlbS8Tr9YS"
        "36EQrKWdfCVhNDSrELHxsWwtFS+0rUAuLqsQsECvdaGCoHuqQa1ErpOoPyZZsDgxzi3PMpGcP6xTMcGqCSv7HKQk"
        "8DH9MJoYVJyUsIOow6/Or+shXrAqLb8nMCykMjokQDBhLQqwA6tcLQEslJyzsuGpGbBaKpSpiijyJVCxYSgcq7Kq"
        "bLHtIYGiEKu/KR0rKSdcLt6t+p+qMD4xVKLwMFUwcDFaL6OwwavRqpEsGq3Ap68yYK+tMgCplSxPMKMh0ipTMV4x"
        "JigfLces368ksK8y86k5KO0goywVKxuqEy26qSIqFZuaDm0qZ6ZKMfUst6MpINelWybQL/UlaLAENestaya5rCAt"
        "bqz6ni2rLLAqMOmiMTDprh6iySvmr8+vdRjLLjuw76R4soCucxmjshokzqwxnpAxFaq8KsEjMiwXLuWksqzfKDQn"
        "wqWeKOMpyyYAJacvzTDKq6cpFyx7KcgpcrA6pYshkh7kqF4oJzEhqh4u3q/QsGymYCukkcAjXC2YsUcp0SkgnYeh"
        "KhUjMI0sVrFnKcamYCprqF8uqqWDqh8t07DErgGgeCn8rD8YOJrDrh8sdrPFrxEtJKkeq/Itpq/PFyskCihrrCwk"
        "VDHLo+4XYh7vrS0lxCIaMjetCCXrLcktvS0RoS4m5pdlrCKovin1rOogy6etKoWhqS/7KkslTp09oQyeE6bPKeEo"
        "GSwfrvKd6KQnsr8oNbDHL0AhjSxirgMvZyPOH94b4rNnMaYso616ssYx6jGar9gysS+SMbOvciIDNWgd3LBLKo4k"
        "tDOVp6W01qVwLIgrOK+oKoqlFgPfL1Ew0SW0JEMyB66folOiXy5jstghT6kKLh4t3rBcnWMgV7PkLxU0Lp3CKQGy"
        "ta9yMmMwhK6PKz6tTagssdEx2bV8i9EwajMsrJGqmqMXGuIvbyuILm+lBzT3KcizFiVINXgzhbVbs9m3/a83KN+y"
        "7zSvMDw0KLO0sXOupy1wLWwr/KsOI0yy/ayks8cynSg7pI2tszX9Gi8tlqqLMW8xyq0+Mraqda6+Mt8tCqfGp5So"
        "mC+/pfUrSrRlJG40eSpBseWxmKgQKe0tBrH/sSIqnyoJHqwnIbIKMUsoFyzenmElWpZyL6QuATTCsAm1bK59JIqs"
        "JqzWs1As0C5SqUGyUDEFK84sTbHvNpGsiiuBpUwr1St/r9208y4OsBEvwbS4JVqwTCvasryspKmUMSsuEy8zNzkx"
        "FhprNP6sb6zcqQAtOSbUJzatUzKeJmEsda2zL3+0PzGBsZapViR8Hz2vY5gTNgIc6K5OruOmT64oLasvXaiaqj0m"
        "kyYfrWYtNrD0KRmtUK0LpREkbSmhnhowHC2kNYYxd4kXNMesiCmXpG2s4iR9J0mrFzPaLGOrWaQEKCewZqxfslis"
        "Oi90KxKvmiVCNC4pYhtQsQmsGrCuLNufHyVclTKuAqi3qiwsf64XJP2j0qyLrEEjhAz6J0gmpS+0rwclXx3xM6qp"
        "T6C7r3EdgKn9KZiq+CgjKUKvAC7kphQlPSutLSauBi5VJOmkd67iExarIihoLaGwZSkPqdWtpqxfsO8ioq4mJXCh"
        "pK85p5GspStMrpKmCCy+LwouVi9UJe2o/CvHrTurJq33q96nUypTMD2qby8RGh0tXi3ypuorE64IMHwvxC1YsFmw"
        "06yOKLcteiCnKneiE6sWrT2pIbIIKZ6uejPtLmqyJq21KPkqh6JDLqAuEy9Tp5qnzCmIL3usfbC/NImwiDBtsRcw"
        "JbFZqnK0Fjn2tHWwYzJZLTYpY6hyJHyziqZYstkwhrQhI9opcKiEKSKtEKjPqP6uJSpzNBa3YKQqJsav5LRjLCkw"
        "pKzan4oy2zPvNB2tYC1YOkArOzVMsJSzbShcKeSohDUNNcwzxrVqowm08TQ9LWeuairBrEAuV67BOLO0+rMdJFsw"
        "fjDptWEqV7QHNFKxETC+Nm0y8bMXNRwtKjSVMXsp6y7ILXgxXy3MNn6vSqP4NT02jbVLraYrois/Mls4VDapr0sT"
        "m7AyK7YzBidlsWg1LKr6Nn0w0bQEOL0mhqxnMBA06a5JOKuujLS8MC0tGjSaL4Wzoa2OOD0ua7cRNRyvS6hitJGj"
        "Cy1kNamstDEqsrKwWLSMOymtHyV0rU+wIq7cIyGyDjalLvCzzLOdstiqQ64msT2x3p2PtMal56EhCk+sQqWJITyo"
        "yCzNKKwoA6lBJuStdy3Qq0KjVivzLcmmNalonlYtFixdKM+ljahIqKeua7DXEiMrUafdLSco8yTSGNuu1KSxKowt"
        "kKiwIkiudCzMNRCxq6F4LCGvILCFq/U0TS7eHMYznKWjsEUsp6rNKv6vWyslM4im7DEar+AwkLG6s9gr/pygpnUo"
        "S6mIMyoaoK+hq/Yv0SoqHOqj1SwMGF4wkqpVKKItfxeJJQ8tUpx5IUarm6Y4pqGeKy5Ct1KohSzpomywFKq8OL+x"
        "jLQ5Lo6wfjBYLc0yyaxVrpGxPSwZL2OdUiohKRSvaakqMUuw8atWIg2wEaxpK7Ajs65Rq0CwjqxvK80nGybyqnWw"
        "ZSrJq+aoXi1gKqksoK2xNWQul67nM5YxoamIrxccDTChKdAvyawSrkekZ628LJCtoSisLEksqhY2MXww7yx+Nayn"
        "A6cAsY+qdS1htLEsQiHvLTwvLbBnqSYsqDCXsW2ueqH9Le+r4qxPtGap0LAhqUisAauArrgwoCTkr1yhKi7JL9Qu"
        "mimMGoAwuqEIH44pj6OyMt+tMaIrmhkw168Rrx8cgSVCIjqplzCTLMktsxqnqZulwa+Gowu0SDEKMiKo4KayL00l"
        "57BHqKQtZaXZMMWpFi0HrpSrUy2+HBYtRCnWrY4uRS4fMEc4mprLqxqrFCrgMXisxCrnLDQurx+btNAmgKmcLn2p"
        "Typ/qxktGq/uKgcgAC/crxSsoy4pFROs0KEiMb4khCTfMEYsFiheKkmwvKqoJDutFavFJe0oZa0BsuEnEC3tpi6y"
        "v64NKpix8ywNpkmtcJi2o4eZQ6mHrA6pAiKxLfwq7SqPJHap6iVFpC6wCaziLBy0ya9KLbyvuKFEKU+aUim/LLsp"
        "TTHDLIIpoSkir3ksOi0uHzgrc6iWLkOr7ySNIrusVi7ELHMs/qARqAQogp4ZLxUa35lDMFgnralLpr8pkqzQpeKm"
        "QKy5rJcq5SAxsJIvwK/kruGoFizQKxuu/qodJNEqTqxLsTYkQCtWJf+tua8THwS2jaQHlDeaNLfXLb8yvarpIiQk"
        "UipRMQUuHbDpLYqnZLDftHmoDyNPLKQnx6qrKHguUqssLEyywLeYJqamOC+sLIcsMasVrL0tLLicMggsDTC/rkWn"
        "LSINMlSipCm2Lf+pHa1YrvKgMa1HqjOv5Kb0LIauwTHsKIupkqgmMHQoB7R3sK2vJydyqDWw9S9rLlQvXi/GLKal"
        "sLNFLSkyDym5MQUu/7DisigqlrC0Mg2sUC+no/klMS+6u2WsXixSILuoL5gUMd4u5rYDsvKpDzenrMc0oaidMuGY"
        "YS6WLSk0eS4OMqslXi/fugKsEaIFLxCuGKjzMFIsvbXkssqrwzaHKNQ0fq7bMz6svSqAJkU0Ni5yNkKuhDDEtHam"
        "Ky7ZIO4rmKYzIQ8y+yLJLyyrXzETMQesCaztrb8oUS4VqpExKbiiNwGvYLJktBs1/KpNsjG037BrMKAP5KxmKJ+z"
        "HjI4r+0tGjAmn/SwIKe4LUMq8yjAsHKrVbJeLkSkqCpaGR4rAqumphWrcq4+J6awzbAsLiqkkDE+qNSqtyprtfGt"
        "yCJXqSoyZbHAq/AvsaZyMAGxe64JIHoy/K7FrIQ2gbMLrBQvIK0+Mb+sUbAmpXovYyy7nWKttqCFMkO1AjSKsG4s"
        "RbJ+LOO0ljXCtfezeirUI+spCCZcsJ+xKzLEq5YlDi0AJhowejWDLEs13K/psIa5eacRM4asujFOp3UiSbO4soWy"
        "wqvktIE0xTIdMsaxjyT5MSe0n6wFsMu0EK4QNuqwebVXqm61oitFLAg3Oq5ZtBSxvC9ZnvCm4i4+Ln0waaWOutEq"
        "0bBXMaQuR7AwqEKrrrSkMTG1JTW3M0y2wShyrE2tHbGwtdOtXC0KLWm16LOEtPGjXy3FKTWqsTXZM1CkEi6DGcSy"
        "Iyw2OGis5TFDMbKqRbHNKda1jitcoGIserDbq/2wpKtmMlQueKWSrtuX7ab0JqywAK8UKxSviC2lpqSu5Ktwrmme"
        "6i0QrCklJClcENElpSvYNPwv8i3InjKs2I9MNPAsPLPBq4GyODGqLD2lcKxYMBQwxq+YrngsR6xDJd6sHS2MqAor"
        "jTGPJ5OuYCWJrAiwwS4kqb+tdbJyMCKZ2KkNNFuoYy6nMEa0cqUUKKavIKcWLAGwgLB6q0+w1aiYo5isgi1NsPom"
        "b7GvsE0eliFxNFUtqqBPLnOxbigirUYmNK4DrhWwk6kYIxamKqF3r2wq0B6NrDGpzqy9KrghbxZ+tTkpPapipi+z"
        "4q2pMVEmAK4DIWyzVppvr1IojiUZMLKpwC4trEql+bT5sdUm/LW9tkoYJCxZs5ctgrNGKbgq8bFvJ8qeZzBTqYuq"
        "v6tWqfAshrMYGy6tY61aI0epySMbsi6pTaFULSevJqz4L2Qsha3pJCkpwjAysBOsvKULn8Ss/KuvImyuPrI6rM2s"
        "d6FlMY2rvy6voCKw+K7bKmUomjI1K9ae8KkII6GsG6+LrKOyDSwFKPisEDBlrwombaFfLLqq6qwbnL2k3CX2MRmo"
        "wCyZqnonEBxoMBMhoa/8MGouahzSK14yky07JVUkaxfkLGYxgKaCK2wtvKjsN+qtQLNwr8suf7KqKekp1qxwLtuw"
        "zC5urwm3aK+kpKItvp8PtFmo4rG0J9IiErL/MYypzKtyq32kCTKELcOrTJpqqzapxawHJIq4gahhM9SwM6L+shym"
        "/K0DKrqmfa79K5sinikhKxwcGCxEK3ks1SQCLZis4qkNMBuoGyBMLL4mhpTNKTomJqQmIgwjiaQDolQlQCURL8mf"
        "FCsYqSOrEai0njUdx6lzuUwqAKOcJEQu5aR8q5ImGJ3BFKKtDbGnqCQuUCJXMhYwAykfsBmxmqznJfYoySWQqSww"
        "kqe1Jsuk/B6spkCy7az8tMylqaUBMBir1KEiJAOx/ilgq76tjqkyHj2m+pqiHWIm6aW+qnYYtSRAr7osFShHKZot"
        "CRz9NVWo0qnttN+q/TJHsR4qUS/7LbKvdS7arhon2LLjKQMs66s5JjmtuS0PsvszWCpuK1ExuSwvtAk1My2QLtou"
        "RqonrX8wEqtXMNYxJzQMsienrrchMV8z36KbKkckfDFPL8ksKjCQsV64OqJVMK4wibCepq0wQy4PNGIoZzODtbAw"
        "fyxEMvUwWrLXqnqzna6VsQm1+BeHNFYufhTrrLO26TBZtM0DlypCNhawECzlqGWrzismMDItfKRprtS69C9Vnpmx"
        "xyyzMYW58rQeL1wwuyzOMsYvQKrfKacyQ7JUtKOnR7RHsb8ywrEQtM+G5qnmrOKkmiYsti+trav2slu1ebdQsTSy"
        "QbXBtbOwvzJ9sek0gzLessqs+LWUr3A1iTSkqtcvWrRCthw3/KWlpU0qYK3Xt7ExMTLZNt824bTTNIMoKy6FsO80"
        "m7S5MtUq7TL4pi42fTDeKfI4wTHRLKOsuTLlpJw1CTaAteEyVK78rKQwfLKdsQ6tNJm3sss0yDOdLBQytzMQq6e5"
        "rzG2rHU0C5Xctpg0RSkUqRcwUS8FsBOqdK4tr+SyDbWxKsYlV64/uHYinbUFt0i2DqIPtoi3+awFrXGlKrFtrKOw"
        "K7VKLeSwDTbtJzqi4iTkK5CwNS0DtR8wRyU9JqIr9xgOL6wt2i6/MBsnEDSgsWQnOjAPsRkv5TK9KCC0eCsCK0ct"
        "0q/1p/IfOyx1n9640KviMQQxgCpRrTkvi7UasyWxuKGLLOsoR7WlHQWpj64tGj2tKJxCNLS09bVxs4GsJiuht34s"
        "ny/4t0+t4a3zLgutFjCWuKCvJqWfGO40rTQSMgMxwTIEsN4yFDJvLuc0maWJsSEkuSdrrR+wCChfMLC2wLMPLXEy"
        "VbTFKfgssrZGrms00ZUSrmMoXCo9rW+opTLfsec2oasKMRc1FTQ3pP8wX6h8Ni4z4i0QI9qpmLf1qeqoyDD1OPiy"
        "OyyqthM0UjH2t1q2TjAzs4qzey7bsamt/LN0NEkyNCE3NDAwCaZVrci0jS7oMXMp9rFNKc64ljD8NGq0eyzuryax"
        "Pi3BtSW1N6xNtFAlZyxxnEetizBHL2crRbKPpZyq1KoUKUuytq9MruS0pq31KrCweSjNGQMveLE8MBWseLIrLjQw"
        "/THVMAOuZK7WMHqxX6p7MXQy462es+id"
    ),
    (
        "ei1Osw2xKayHro0rGjBNJyCs+DL8LSsiaKdAKJit7CTkLh2z+Z7Lr4MyNizqL1OrQrAusI4s0zIwNG21Sa0Oq2Ku"
        "ayyfrhWxLi2nKJWod7EVMzGsyCgap3YwCbFTsce0l6mEJK4wEibfMDGxfqsxLMofJanLL/ypoCh7HO+y6bFGI3Kh"
        "ja87tJQtmzDxrIgwGyrHs2EqBbBRsSyzPjM2LWOgca2SqkwiPDDBrtQjk64AM1GtdrESrQAvuCyWosiyKanBN4wn"
        "ybTnNTuv7hyENJ0jPK9BMFUwZ7JDsnoreLIRr4WfPKibsI+ou7RLKMsnIKwRMcslF6YDs7u0Wa74rvytVKy8LAyt"
        "7jEbsP2h0aNYLRGv7bJhKoc1fzADJBOvKzDLtAcofjCBMTI2/iQAqKstbbPzqHCgszF6Mf0nBa7UGwg1KSueLKkw"
        "HS/yp/qsRChCs34xMjZTMbAxbqfLLEWZg6kvqWOxGqw4r+WoqSl2NICw6C8YrAQy7aQmpqgqhKFEL6qsUKaWpAWp"
        "+66NKOclaadfJdWkBLBMrGUtRKlcLAOqXCg9Lt0t0LMpo5uxK6yGok+uty0ZtF+hS67SrM0q66+FL7eZuKgYJkuu"
        "ayYrMfCwR6YprH6uSibzqU+we6FiMdqsJq1cqDyvqC+jLdivqR+5rM8gVazchFInwCyQJ/ysJDPmNEUyayjzEzol"
        "DCQwLesuEjH8tQEyLaiqnP8tOLA5qp0qAKXLoxok8SzhrZWuVzAlJ22J660KKTiynK0WK2wwBChSqVSnhS37pKOy"
        "l7RmLEym0arQIKquKSsjIWarTaNlsEmyq6wEroqVlqoCrsUoarCvIy2LqagUmM4ynzBUKLcqnyi1Jh4wuqh6nEwu"
        "/yAYLUOsdC4RsLAnXCghoV4mWCaII0cpYCWDKK8txC56MHAhDDAEJhkvJqr+r0WuJazspL2rnKmepXUuxCo3qxOv"
        "iynYI3avpCnVKUIo7CPwK/AkxzGCKR4ud62VsF+xKrBeKHiwCbDzKW4tKjF0qVMrNjJgpQ6hs6cSqVIvACgNr1Mm"
        "06mAJy+sDid+rJ6wri4EKvmvaS5IrbutvqWnIA8oSK4srLowYqcvLokpiKgSLlCna6fgo3GnCCfEraQojKk6JAIt"
        "9yZapacochG1tAsxHrItMcouZS2rK/KtDylGL8etXCzdLCUszCrQL+iqfy0ZML43QSQEs9Ct0ijpsD0u3i7+sOOl"
        "hqlAnlquo6xkqS4pHqzQo5GpVifrqLyo+S0FqtgssqNaKx8q9qXFtn4sAa1pJ5w06jDwrCApUClMro+oBrAULW2x"
        "xK1gKUqotq6CH6Iw07VnMgMmv7CAL7O1grAFss40Wignpw8xvLUjrEov/LHErDcuzS+mtPmrZS7/GE+0iaLvs5kn"
        "yivsMBMxSKuqLKSwJrWjNlihTi4iNOctIqzms+opZDPgttwwZqy+KBWuUzJtNWEofjBcsp0lxTE/NEE1wi+HrFUg"
        "v60WolaZmKg/oeOis6ksLV0yjS0NLlYomi5aqrGsS7BLsHarorBONduvdi5hqcmwnLUDsR+vZyh0sh8p+629NV6y"
        "1TClpCs0AJ7wLAcb8q21qTifDiltp+ypT6yqMQWhyyXeNUW0KDFZsoCupa67NkQoQid9sOswYqc2nfUsf6Uzsfuc"
        "5iFpHHQf+KwhpwIt4q+PouAmjzT5sN0lPScgr4+kxiuBsrqvqa+1sTws8qwoLBmuVK3vMd6yqaixotGmdqw6nOut"
        "ESjQL4Al+6yVnTMipzDNLDUfOrCQrq2l+qgbszkmhSuLK5KiQST6oXYrd4uRLLumbTRPqjCte6sPsAOopiwvsCWw"
        "hKhgslmafa15MBsoybDCLlSxbyW6GIktbDD5KEYj9qCbLcmrRajFJeeoTC7QpX8sXK1srYEt8qkDsTMrMjKLr3cq"
        "KiTzpFams6xcqKKMhS09r+GmPB4CKm2eS6sJq6ivvSmqKPUoliTUKbMgzKh9LssivKlWp1gw8SqaGhWx+ScPK1Et"
        "6B0IL88rzKjHKogwe6wNKkKjx5/trc6jwKj5sWIvwrAiLZk1B4pnsRMrvCp0GdssTDOVsf6xZyFQMH8qWyQlrEUr"
        "QqkhMSMrqCw+KTWu+6jbrLekSa4nsNujA6hAqmOgH60irocwo6tFLuqo1qpQsREn2LMbqeSu37L1q0uzeq4lMF0Z"
        "ibCZMeytezWJtUWs9iyutFEpIq6TKzMv/DBypOqwLbBMoQuzO7AYtIKlgLMyMcg0jCzRqh8ujbApMdWtYi08NeKw"
        "2jPIqEOzfyolKZIvBzBHN4+pQaxJtamxj7FaNSCsa6iXmcg1Gi4/M1yxXzJqtXSxAzAUsAOxTKzPqo6ucTRAs5Cw"
        "KrKCMbI11qruMgo0/rDUtcI0US9BM3IwDKzDtDGz2TAKsAK4IjG9KB8xYigLtyAwMCzcL0czhTfDsU+0IS65qkql"
        "tTWoqeu2SzIZrWqyRDZyMS4qEq6dNOCqUKjCsrqqczNdL2kyYjDLMX80UbE6sqm01zTcM/4gN7SzOHqyNjeQtMy1"
        "EDB1qec0ubRqt2erNiC5LBSwX63rtNMrgrKQOL20CjbAp7qsm6/KOfaqGLNJr/k1bDBFqOosuCq2MQyi9RnxIomw"
        "oLAMKKitFqZZKLMmOyN2IYOswCwSHAwqW5xGr6SwXCk0HCOvULGUqJMqHCw1LUG0DiVyry8dBKtdnW0stSiNNOgl"
        "JhjcLK+hPB6TsIiexq8ALnQwWyQwrtyoHrF+tA8x8KPNLJ+vP7HxpfGlNixMsPWz0aYIpZ4uby8GKUquBaksskyx"
        "Xy3ZrM8pYSdrLAOpHjKVmISxsB0npFukVyJPpKwMYjHVL/MwcjBgHPQcZyX2LdKXnqheM1erGy8yIeSsn7DLrOSc"
        "eS3CKVSpRScGOQYh2yz9KWeiw7HkpISwl6e4KwI19KwNNN0sxyXMKTWu/av0rWcuOpk2rMsru6kRLP2pcCkLMBCw"
        "1ynYotgu/6mWLJcovS9xtFAou7FJMigixTGwMi2wHy5iKTesaCkYKN2i4q21MBKYTDHhLtk5vKBxok0sPauntGyl"
        "qqoWr+GwuKURsAOsbrQ7LwGlXDE/LFCpIDHNrTQw9qiSHRkwbq6brBihFyu6r2kliK1ysI+hLSXqtRMi9LEaMCIy"
        "wywTpr0sLLTSpvOtqi6qKyyt+DPznyUp/aLArhax8yydrJas+SB+o1iuLax8KNkw3KrjpdGuL6gHKaCvtaaCLisr"
        "RS5PqomvqyjZNGSpp7GJJ/AwJLEXIZm1NaebJsushibmJ08tAyvtM16mBypvrSCuq56+JYqtOy1DtEWsay1VtWIo"
        "daO8qpKo4y7PLbIyDS59r6OncS7hrA+q9KKfp4uZJCX9plugLao8sd8Rbi8gqK6vC6xQrCEuBTHSI5YqCyjGoYos"
        "Py8ErOwy7a00LdircbS4qH6qsiqopUGrZ6ahqTkjDBWXLMIx8SMkn2SqAyhJKmgmdKpMrOSofBw4MSMtLiebI38n"
        "YKQcIx8l06Hhre8vTiW+sMsmz655qqcrkyGGKS6vjSeRK3Iu/zDCpIGxP6kMqTYosyzQL/0mxY8ZMq2oYKs3pgqt"
        "7y7ToM2kqadYqludZydnMOun6iXvrh4qbShDKU2tN6G4LSqqQjMeqYiz+ClJrCuxZK4EstKk9qntL4kujbQNJGIr"
        "tSfvLfu5gK16K0a1hzLeMXmtK7EyHCq1LjILLzQzwbAbq7wsvaXHLS+w3i5BsGexRymOJIYupi6JoUInRzDVsjWs"
        "pqpmrdAzbS5FqlE1aC+ULrMuLqxKqk4vjDN1rgavES6SKDAyXzH1J5yu3C41KrMwpCjUsp8qpSV1M4suQ6Y9L32p"
        "GxySngimcSykqZQwRi5VNNIxwC9LLek1aSy7MhSvx7essUCpoK7LMXOyKjbwKdc1malAMCQwRDXQu2wwH7FeNKso"
        "0TAGLvKxRDFjMyWwTbdVtEisU621MHGqwDXhs3s1yqwkMRQzYjWVu5gw+LMZMvgxkS1rM2ezYi6Gu1Um5qWttWKv"
        "wLI1qWStZDTZK0sx0LBIry4xDi48oSOxlDAllWs0XKJVqrYgbiuMtEKxATS9LuW3fazfMBo0QKH2r4kwXi0QLAyv"
        "J7CLtaUyQZ1xrrCucLdNs8Cj47CyNCo0bi3zsNAt3zGcMG6oYrJaMBSrejIPqFSzHa8gJ56dRLKDLne3iK+sMJmv"
        "vigbtDuyBShUMLMyFDSuJ7mtrjRnMWyvNbFOJc6vXSQqL0gdeJpMK+itqKxcNaUvc7X/sMyzZrQns0K0e7V6Mfg0"
        "YbBHMxUuXRxStAOt3yNUrUQmg68ZndGstDBxo0uxUiWFtz0zorRIrWe0cDESNOY2KrYSseixQKwGsA00crEYNoaz"
        "eq9Irjoya6wpstCoo61yOJ4ody8RrkK2aLTgtP0m9zOFKvOpxi46OxCkeiEkKm0qVrU3Lf6s4RoZMrwz9a1ssYek"
        "J691sCgyXigmpJYuyLJWtYSw0bDhM9iuHzMwNfqyPrRrMgU0OS9UsIExUba7ra21OrFatMQx4CS0qLUyR7Tpo4Iw"
        "4LGeNlWzhy/tMhkhVbEbMg0xLC64ss6bI63Xq1oqySxfMVOxjazlqyqoXy1WtSKwkTGOpTcwdrCTMeUod63lJlC0"
        "jyB0rS4K1ilFNDGoWbGPqnIv3TDFLv6it7KqoO8u9qq5rI0wtS15smQsEayFK9y0Iy5mKlgnlaW9LWCieyzFqfYs"
        "A7SKL4wzOi3tKJykHqTpsFIyhy7xMCWwjq9MrN6yNLb4qumoli3zIjyx17JPqJkoCbRqNLcworCynIYaXCqFLHEs"
        "sDC2LPqzECqGLOUvNa0uLdWv4RjLpNEogyt5HccuGqr+KKQvF7IAEaklYityJkAr/yX1K+gedqV3n58pfrSOoWqp"
        "maU/ry+ouKM+MWWtFK5qqg0uCbMgMWCyf6h1sUq4h688MEyqqqu1sviw4im/ng6qFStesjYiAi/YL8wuwZ+yoXSm"
        "6azxLFyZRCf7LZKt2SsUqP2vBDAVoGOoCzGjsNesa5X/LK6briPAKrEwB6isJ62pNqenqJazwimuKXeUNSqipuGm"
        "wixEJW6qjJwjrrWeZa4UuHcudCUwpkAzM6iNLnEv9TLfoV8wSahkJDMw4ysanomtVaToKByrJbVGqIMtPiohqxUl"
        "G6MwJP4xQqw9rFEu/bSWrMwrsCysJcYotSCyrgMcCyvppSa04Zw6rI+kk7BsKH2mIbRYKRStUixSK7wuxKriKPms"
        "jrGLrLKxijFMsFGsr7Cjr2wuLLT0Lwgs8R18pMWwuaoSpLqyf7PnpT2rn6tCqU6sKa2xpOiq9C7YsOuxlaALLViq"
        "5KYJrF4r+CV5qYuu/CejKCQw/ii0MBOo+7MgIjgomSpQKjWpUyhvLjQeX6nQK9IuXylykk6p9aT8p7iePSg8Lsgp"
        "Tiw0JsUiay10q04rjC1ZsbembyyOo9gR4qVLrTmlz63YqPsucKSsMy6vQTAwLDUwpyxvKWWk3Kp0HnmstyaCu6Cp"
        "GSniJPmkoawoq+QkSK63La63oCvZAxapYigvLe2qDiTJoyIZmq0FLR4uAi7hJkssXRdaJpcwEqKOLRSpSi04oWQn"
        "RLZUMWexubQ+qA00xytcNQ4zKijer0G0ri+vrremCSyFLQiaEDO/pTgoYKmeLwaula+Bsb6nzbRpLe4v66B+tdmx"
        "JqoptB8YbKgMoMktLK+cr7oxXbZ9oROkL7YAsW+smLTFrNOoM5+nrIKwvrEctamyrrIxLbCxIrTALwC3lbCurRix"
        "b7L3teswiTPjG7QxITFXri+wIjTBs9i20y07L0YppLLmMA+2MDDoMmW0J6ygHkMywi6KsIar1LHSMA2pgjKOM/8y"
        "tjFnqEMmNLZPMjgoly5dKf8x3a6jMAowtCo6rAipLjCDtGYrBy64MeamaCX8Hs0mbLUoMVcw+a/orsWo8S7zIgMy"
        "yh9iMbOx3DRTKYcv1CiNJyKsnTCKsL+zHygJKGMmxTBTtTYzeaXdMUAuA6tuLHKrcrOSqo8xISgkqEQs+beyMAMx"
        "YLWAtc6ydCf2r56zDirIMhMhky/+KvyzWKzIrC8x/jNeMWOwVrVMKjevOzYisSSqXLbws7wsHLbZMC6zNKzKM2Gd"
        "DTNnsLKsDyXVp00sOiAPtP+v6K+tMA0yR6n/MA+wZLH0LZO5oy9fMXOxmTIVMvqwArAbuO6zkjKsLEWtT7PZNN6w"
        "uTTeqCa0za03tB6sELJLKfUxVDQYJG40IjQvqHssybayugIoPCRcHfKsCyumpwAwmiNStE8xVLGDtpIptzBMKt01"
        "aZ/4H5otR6ubL7u1la6EMjoupDBxKTCnF6GHrk0uVbfks5+hTKL9pyqtgrZvLlSgZx15KmihpCjZLgGuRil2swAv"
        "8qbAJiwxEzBkMMUvwi/dKxMqADLWriQkMaizL7+007TQtkOgIbP9tWA4u7AdMRUpnjTNLHy0/TWsLxkxzTeUMOAy"
        "eDJLqrEzJLO1JKAv4K1grFY0TbCQnL8lqqwTtuaZULgdtlOv2i0prYqyFCr5JQuuOa5GMuEt/S4tKrgu/Jc+tJCq"
        "LzE1MrarNbCSsAOt9zE4NEsjYClft/0sdixtL34pXzNaNzgtT6+ksU80EzYtKHY0k7Jbqd8tLaxMLQuu5LagKP0q"
        "Cx0rtDekaqsXMiuxCTIXrd0z9bESKNOuv66DJeUnz67VJOCoA6ABszWzLaTpKIcvuq0oMFW1pChAqMytx633s3qq"
        "szIrLvyxdLCRLmawQLBSsWowobAANQIs"
    ),
    (
        "9CBssBOy76raqd6iozB1rMsdkLCzrsOt0yu0KDciM6d2LbOfSKpWsN8tRzI+pOCm06tuszoqL6maqIEr1K7Qpimy"
        "/63nLc0oma5arLmwKKDzKOkv37CksUAuSKc2pv0yirG6slkwASRqqDEngDAGMJ6quSuDrOEo+axsH1OqLbDHr8Er"
        "brBpMQ8se6LCI20q7Cz6KRAvxaZIrk4msTMhptgoOy0oNDk3DzMqsa4xf7JSsIE1nSxfJn4o8KJZszEp/6zVt8Ok"
        "p7ApsByv77RFMWWyOKdhsGygZyBetYgufLIlsUQtQ7TjMaUstTH/qL0pNCzdrKGyVzE8qMqvBbE0LqoubrAFLCon"
        "pShVqIyxT651sLEtrLI+pRS1YZh0M20tnq6YsTMs/id3J7ciQC5wJ26Zj6ekM7WtLi1lLOcua6M7K+KwTyw9o5ew"
        "l50PLkqn4xwAnFYzfiQusncsuDTiKVIoWDDkqwQkKSy4pZ+rGLAHpL4shS9Ksmy0Wqw5NHK1pBwMtQOqd6RTm8yq"
        "o6xCL2kvJq7PIakwJDFmLIQx76OPrEKuVKwds74kJihFLTYzj6KHLeCqUCwzIZyo0yazJrQuPykKqXAjTaVeqwKd"
        "w6RiqEmvLSxLKZwrIrASMMmmuQuDsawrx6xHLRkuqCwjLkunmK61MT8wqTHes5su1SonqRMs4Smcpz+W4S4aLN4c"
        "Pataqv0yXqwVLXcvkDGyKo0sgiknLo6v+i4FMquf1acDKn4hLC8/ozytrSlkMKwwz68GIFwudKdSqvStSKz+sAyw"
        "kizDL+UnCR12LS2vEyyhqcIvaC4DLWyy7KysNCOsq6daLVeqIyM0LXcdSa0DLwys5iTerk2ur6WBqJSndiS2Kdoh"
        "ASfAJLgn/Rwosj2m4iV4KAqt1Cj2n0SoEpu4Lb4nQyZ/LMgl4yZ0LikZU54BjkcosSjJr1MnmiOcq82xJyulMMas"
        "r6gBr/mkP6EYLJkpa6rnKOcqzCq9LaElNyNVKeYn/iH9q1Ul9x2ap06ymDAQMESgsaurKZGtoy21sQSpVislMO+W"
        "hK5/qR8rUKqAKcMpby4OK7au67CNpf2qtauJKk+ktSwvITeV9SgEIQmsXyFGoV6pCiFuJf+Z/JH9rTmlC582DVyq"
        "xKxaoPKN8CqrKc4mnKhrLhCp8jSEr62udjCANLUwV7AvrrMrvKWeKn005y4oL2WwLqfAMBInvy47sBGhE6kJJ7Ss"
        "gqZrsHepp6qLMBUeUbJ+qTcrzqwmLUChAyyXMVMhO6eYKsAw0DGPswOviK+iK4CfNjG3rC2uqqSBrNanwyyVLPuU"
        "oCzILpOw5KMJqhombDD8MBi5LbYPtGOsVq4yLp0x4a++rNuUT7IWs/Yuia1nqU2skC33Kbq257X8s7+wpa6ANMc0"
        "FSiqL0+uM7PqL2orcbD8MWopfC7eKKapaTPYMAgvPLOisa0xDjToLTwng65ysFQrSisDOC0uiyW3qtQsTjOts2Wt"
        "TxgXNEyrLq1RrDgcfqeSJ+Ip9ylsq7Kyb7ENoOqqubFEtAevbq0NsMyrdpxAsCU0YjDTKc4227KzsyeyiKsnKtsy"
        "9KznsUquIzAfLnE07y5NsbGtwTRAqTcvZS3XLJCuNCjOrDY1g7ATsA+sPa2brQitLzUksqInx6TgMHgp7qpxsvqr"
        "rSu5KM8qNq6gMAgu96rVHBUzRaz9Lm4l2KjkKzYwD7QWqxOh2KvMMG+oK6kjo14sM6gqrG0iWSoGKgahSKopqfSo"
        "/ClrsBiwZTBNK3GsWiePp3wrICA8MVKoMqtXqq6giCj/rCYqqKwxJVsyXKgdqxo0HLDKLVqrJS2orbwsT6+LrKCs"
        "Dy2NJnusoa81MOKiD64csEqscCVoKZqqbi2EpN6tHyn4sH2wMjDJHhcbg61kF0IwN6vtLk0mxaPsrbIeMzGerFiq"
        "vSlgolcwNaZdJs4y6q7qMDUsX6cYK3ehfK8AKbCkKKflrfWkoytINX6tFibTIoCu8qwpIq2pGazLLDYs1qqMqWSp"
        "jiMWoreviLE8qOepPrDErfcksKoCseapKqCnnjWnOzSDKlsshCbvLG6qZjCdMIUvSarRpR+sjTKerXKukChmMIyn"
        "qLDNpCyop6TAJB2ti6+4LrcuoijEnQEcXiBVqKewTyQxqjqojLBPLd6iAqOpnAsgLLOwsSq0vTE6MRWv3rdEKBQs"
        "+LMiofkrMi6pKLmynLMesvQoULMtKca25q5hqh4tqDPXoJeqQi7KKAmwRzZVNFIuYDB+rY8YFKEFqjepAKx0Mg6z"
        "+TPQqn4yy7EXNNAwL64us0U0dK4gr6EyaqnLOGckfrAishuwP5//MmwxbK60Lf2mMjYGMncyD6yoNPU4GrbFKS0x"
        "Wbb7roAwGjVaMVoxvC92L9isl6wbN6s0DjBiLRihcTdoNUAwF7H3K8euCSocJXQur7M5Mg44rSeKsSa1VTPdslcs"
        "QzFMMY2w660iKu4uozaost0x6R/cNbqvO7BEslKwn6rNsBQ2cTZgMOwlLy6Vr1E2TbXOrzqvSjMcqoqznjd7FQoq"
        "0ideNr0lqyw+tHuq8jVhqayxSzlLtGgyrbCYMaI4wLVctBa11qSetE8x97WiLXcZMywRNngnZRTErt4teykrMKwo"
        "1LFFLeOQjaQJJfEphCpCofSdjakRLFQlyCZ3qOIsxCtYswEqQqXPpN0vh61HsEyw3pwNLhIzYK7IL6kvUi24q6qw"
        "TDRzpYckLCsNLYA0KTHQqsmlWqqcsHuvqKj6nvAzt6Jmroe0cTSVs6W0bLLUKREpV7AWG0Cob7BRLpeyp7FmoHwx"
        "WSXgLPgu0qWzLrA0aDQqI8GrdKwvJP+sUDCQLZwsSqSPKNst1ybJqW4wDDGhMUc0zZoIsUIwEaO6rJm07jIMLtEw"
        "mayiMIkyvTGAq/+qDDeppyAt0TewpS80SaYWsgawzqY8qy6ibSSJsHeohCzjJXcvY6mxqjmvkCxIrH6zOi1psPOi"
        "Yy6YJUCttqyYGrUm9ahLNHonci9oH7kspSENLoS1y6sHKJAsTCw6sIosSxwgG8KsNKVzHauvkysdNMcg6pxOMhMp"
        "ki72MEkoIrQ9LZstLSt1FaKup6yQMJ4uxyXEobAscbZhLSEsjq2Nrh+oW6Ydr1KyBQg7MIKvEzRvsc6oKC7/qAcT"
        "D7DcKbIgHJ8LMo2sMC5OKeyuHzJypbGo3S4DInkx2iSejYkuPK0dLcMzpapEotYlNifCK1gnC58qLUuLB6wqpA6j"
        "dJzPJ4qmNS5Rr6wreLHdKkywzbSDp4WtF6YsqGYmgCZuKVgwASyoKw8oiSJ1rFqwXSWZsF8pZq3nKBooJzDiL/Wd"
        "7q14n2MuQB2GLK2soKyDmMCr564mq8sn8ip8qTSktSxlIHMs2jDRLGMm7yTgMa+sK5OArYuksSY6H8infyXbsSEs"
        "J6wyLXomByF6mfYjlqiVLZ6cXiKZJzmna62wK68fWC44KcQrkKSDrFwtGyiorNIkxSlHH/Cn0qRJqYWlq64NqW6p"
        "Oi/WHSAtty1+qmCnXy6ArwKw9Cm3qf0uuZ9HKZ4oOaw9LSCvha2HqWui5CTfLKqwpK55syumBS7fsFGl7a8QrBqs"
        "jqwOLYan0Sd8sCCuGiJiqTAp9qY3su+nvi25kZYrkTE2MTAv/aAyqz8laqwtr18ylLLaMueql7MBrjarWCF/LmOp"
        "JRbfsQmeMKZnMM8xCCYdnHmtoa/6MAMowjPztUqwCCm+LNYSCR6vr+QxgS4Sq4SyJK2YpCiuRbB8MeAupikgMqOx"
        "y6boMnMpMRwBqLks+x0WrTIsDSW/LHAs0DDLLlqkUq79KoIoeZt3qWakDB2BsJutAqmCLKQs1TBKLeGtPTKvKjio"
        "BKQXrrAt3iIQrEeqcSxGNKcsX6yholowrigXMSMpirbDM/+oebVNLAaq7iwMKHS5ejViNMcx6rSFsSunWbKMMgyq"
        "6jO/t+syqCncJLEta7XvMIas/rTnKLsuNS5WpA24xTTvMngz2bQUs4muCbCXM0iu7DS3tU00p7LxMrA0Iq7HMW0y"
        "JLEiNFGvIbCctFClu6uUoYQsUS0kKkIxIK76oK61+zS/s/uzFyEqLbK4dLDMrAksQqyWtLAt9jByMU6m0BTeMR0i"
        "QKbUsHQtGy4cms61RLaWI6kwnK5isNGt4yE6sE4o8SwGqOqcQ7HyKN6v6SxSsgGvoKY/sEk0NS4bpsO2krFptqYp"
        "xjGfNN4ikKS9KpEuBzWIs+Kslq5tsHAxyDCnqG0uEym7rb4sFiwiK6g3sy5GKz+17I+lsT+y+jARMGyxS7bDLCU0"
        "/K+3nOqkvC54KcuzGLGksWa0CrD/K/azebANqxcziqhfM5K1CKvcqp+0czbKrTk0pCZQN6Ew2rS6saI0FabUtCkr"
        "JTYvrb+1LLVWnFm4VjR4Itoy1SRdq725DDfjLSQsDLHKI9isGjQhqyayATeVp1ykBzWIsco4UjK/roiuYayTs1Uw"
        "zjFXsWOzATbHrA01uKlGH6Ez4yzTMPOiUDIisxWgzSgbM8gvabZeL+okczAntecwui1kNBmwRjcHKBolhbGXtugy"
        "WyhUp7KxpzMXsH2wl6cDqtc0b66ULu81m4ZLLU4kwyg+qK2tf7AeLrgwVCJXqr4xkKohLjqv+yRnLiErSbCZMPAn"
        "BSZZM3QsuatfMJQrSiVzKFyxrbIqr6CsqKAOK60oCS5YLQEzJrMQqxGsyjNAMFavdKlspvGyKCx7sVEckC2rrfyp"
        "BrDCKNQxYaHsLg0m4a3HLkovtqjSKaidP6F4sQkr7Jwsql41cKJALEywoqxqL86w5aJrLNYpVyjLqfgu7iqHsM8g"
        "0CHypYsknijxLsUtyq3XH54tErRlqvCloyTQqAWurSBjnGAf9SRJLJkfe7EGK/qkvKyBKGaopKxDszq0hKPIr8Et"
        "PxrEJdm1Oyz3K0SrKi1Eqa0uxC2fLE40iLEOtY21A69ponAt8iyoKV0lA7A4r8Oz1BwUJCAvACofqAqnU6mDo+Sr"
        "C66Jrjsh3LFrsB0i8q4sp+4vqTCeLEkmrq3cMPq0+iWCqr8sAazDLm0oQ60pnvSu2K2oJx0t6bEurS2jvxR5pP4Y"
        "ULGNHMonvLAGJlctSa0GtK8SkCM4K2esv5tPq8omhSv6rrGvPK2KLIAoShpIrnWuACqLLW2wIbDvpT+una1QKOYx"
        "KKZ9KXWnp6hnoperjaeeK9wodKxBK36gDim7LhytMrCULISudi7qLvq4A7E9suysei38qi8ta7ezklCxy6vjs9qp"
        "fS5isAGrdy4EpTgqDqycMZcz3CsipyAoaKlUrlIgyyyFr94lzqznKcomJpydr2Mt5SOKs4qcnCuNnjWq6K0tMF4r"
        "MyI2KbOYpayzr6ssJyMPrQ8qICbpLMsskBgtlkKgiCpepMmrpJ7uGZ8hZy00KbWmRCAAKC0oj6dBMGiadDCasBAv"
        "dqB3K0smjaoKKSosayYiLcCpYqwNo5IofqiYqoIumitopxqsJxHCLiAw56i6qSiqKyv4peKxerEstPizZC4XJ40w"
        "qTE5qfOe965PKNAsEqrnrHevSaZMsLkuKiHMLv6mUyLoHK6UwKA3LE8qwyd1LMmlcyjeJMmkWbb9q1ItrCqzKKAY"
        "R6ZQr9sumSxYKJSzobjmMS04byxAssuyhC8+rC6w+bBcqyqvKKx+LNgs0zZJpZ8xCjFAMTU1LyU8MeAqKLUlrnkz"
        "eKl6MkAwyan8pW+uLCxTtTMwRizwM6Ks1K2hMo8eZi6PM2+yaSwHsZmwy7T3Lz02PTAJsHst0DIML7MiJbIvLusx"
        "4jGuLfm0UzA2sxOtI7Z6oJAtOLfdMsksjCtlqrOnprE9LB61K6enrJC1PLCDtaexCip5NemgBzFZpgkuaDIEsV0x"
        "nizOKNSxQLFJqeSkSTP2MQStE6xFrj4hZTDBLAE12xZnKaExaauFOTwxEizJMb0sObXmM/60yhzXpXSykbHBrHMq"
        "WjXdLIisSTKVrcKr4q5UM1u2sjMKMPm057KLMAckYjH7sICy37RGlpIpoq9Dsgs0I7KPsS+qrLNILsa1Ky8qMKyp"
        "5p0qsxynpizetmszjLDsMTY11TI4NLgubDB7t2ColbZKseA1EzMHrzu10R9LuG4xcyibsHc0zKFnnhmxqDRvL/Oz"
        "h63eMmYei7GRKTC6oLFLt/uurbVrsNMxdbQos7q0OqdjMNum5bJ8LkW1HzSGMeMyVLBJtS+zyrG2MPKzXLC1Ma2z"
        "wKqnLAWuwyQ/NVktBa2ErxeoZ6wLq960wzEULSgwHLS1sKe177JmLEEy6rKWJq8odzCur8MzlagTp1GtZrBGNNUv"
        "ETg0NGisLLcoNIw1KbRRMiQraRhqMb6yk6xeMSayabMxps4sj6URKaguOzf/MVG0HrPMNearvyrFseExMC8oMsUw"
        "oJ9Pr2mqYLDXNHEw6SuMM7g0RTJ/LR8wUy2xMiE0qDJmNOmr6zLkL9gvSjIBNbEw3TGKMt0xQbMmMhUqbTPMqKGr"
        "FzB6NRov/LLfJdax/6/Ukaej4bFrLi0zBbACrDY0JS8srq4xPjX/rJMuQranJQMxFjAoouayozEkr+kuirIbLR4k"
        "0SIVtqyzw6F5NDM0Dx2xrOe1LDP9seiyAK13scC0vLKAr1gwb7ISJSe5djDCMbMrhaMysVkrFzBSMq6xlC+xLLSe"
        "oLDAKESndykKtnyvEK6OHDW2PyXFs94qD7EbsP8uHjBUrUgtRy//tPSy3qtYLi6sOTQ0rbkwyq3usI+wQKzSrNa0"
        "4DHnLp2yBrImMRuvvzAXNN6swjZTL+gm"
    ),
)
