"""The numbers of `ops.hopper.model`, as bench/gpu/fit_choice.py found them from
25545 timings of 2135 products on an H200.
"""

# fmt: off
PHYSICAL = {
    "clock": 1.45e+03,
    "sharpness": 4.08,
    "uneven": 0.314,
    "later": 2.53,
    "alone": 0.362,
    "one_consumer": 0.975,
    "turned": 0.684,
    "crooked": 0.54,
    "split_by_2": 0.409,
    "split_by_4": 0.0124,
    "split_by_8": 0.0286,
    "along_n_2": 0.183,
    "along_n_4": 0.0419,
    "along_n_8": 0.569,
    "along_m_2": 0.205,
    "along_m_4": 0.00159,
    "along_m_8": 0.02,
    "arriving": 127,
    "edge": 0.365,
    "from_l2": 127,
    "l2": 17.7,
    "empty": 0.054,
    "memory": 4.09,
    "promotion": 1.02,
    "latency": 0.646,
    "of_each": 0.09,
    "again": 0.277,
    "last": 2.71e-05,
    "stored": 0.031,
    "narrow": 0.22,
    "by_warps": 0.859,
    "partial": 0.97,
    "summed": 0.0627,
    "exchanged": 0.267,
    "begin": 1.67,
    "begin_persistent": 0.0011,
    "room": 0.00506,
    "split": 0.207,
    "block": 0.00194,
    "cluster": 0.0594,
    "adding": 0.987,
    "added": 5.02,
}
MEANS = (
    0.651, 0.152, 0.0396, 0.301, 0.525, 0.0969, 0.0928, -0.472, 0.372, 0.339, 0.236, 0.191, 0.109,
    0.046, 0.803, 0.238, 0.277, 0.113, 0.193, 0.0308, 0.103, 1.23, 0.781, 0.618, 0.808, 0.128,
    1.08, 1.18, 0.958, 1.07, -0.113, 0.829, 0.72, 0.336, 1.46, -1.44, -1.24, -2.01, -1.71, -2.09,
    3.75, 0.347, 0.25, 0.199, 0.198, 2.35, 2.36, 0.803, 1.8, 0.447, 0.671, 0.17, 0.184, 0.116,
    0.0542, 0.268, 0.0169, -1.39, 0.0421, 0.0325, -0.0531, 0.247, 0.26, 0.0217, 0.0314, 5.24,
    0.965, 4.97, 0.457, 1.79, 2.92, 2.85, 0.217, 0.238, 0.0577, 0.0465, 0.00697, 0.0182, 0.0664,
    0.0245, 0.0563, 0.0189, 0.337, 0.0551, 0.0772, 0.0729, 1.72, 0.41,
)
SCALES = (
    0.478, 0.36, 0.196, 0.788, 0.634, 1.5, 0.302, 1.11, 0.626, 0.654, 0.426, 0.394, 0.427, 0.211,
    0.399, 0.427, 0.448, 0.318, 0.533, 0.174, 0.358, 0.367, 1.23, 0.487, 0.269, 0.844, 0.865,
    0.832, 0.851, 0.785, 1.49, 0.377, 0.45, 0.473, 0.635, 1.03, 0.977, 0.606, 0.698, 1.09, 0.984,
    0.477, 0.434, 0.373, 0.439, 0.832, 1.01, 0.309, 2.41, 0.498, 0.471, 0.377, 0.388, 0.38, 0.253,
    0.444, 0.13, 0.695, 0.202, 0.178, 0.317, 0.415, 0.426, 0.147, 0.175, 0.13, 0.192, 2.34, 0.276,
    0.922, 0.48, 0.392, 0.413, 0.427, 0.234, 0.212, 0.0842, 0.135, 0.25, 0.156, 0.232, 0.137,
    0.474, 0.229, 0.268, 0.261, 8.35, 1.46,
)
EXTENTS = (88, 24, 16, 1)  # inputs and outputs of each layer
# Of each network and layer the weights of each input and the biases, as 16-bit floats.
NETWORKS = (
    (
        "HjC/Kr6oSaarLYguA7Bkq4MluqnnJDmqZqz7rHGpqZoGqgQmHicEKu8g+y/TrqmtjieIKXitG60qJOWyGa+lseOw"
        "ASzhqAwur60ZMC+pq689s1qtkjO5qV4x3qw8MBEuwyzOs8imAqoZHXIrNjAPsaalRjGjpx4u3rKZKYsbqq97pGgj"
        "4qz/qignUh8bNAUq/bIAM7ixV63SMICsBC9AMYExqjDOLOswmSpjsmUwHjDAsHQukRs0MtEl2yTGsJkpWiwiMMcq"
        "Pi0wKzOt3rJPM2y1haxtMFUmz7A0MQo0RbDarD2pvKq0r16yWZ55rrOoW7HjJfCtF6w/KSuUh7IVNY8rAa+rKVgw"
        "ZKrnrLGv+ywcLQMvX6+1rZuxxCkErdiclC0Hs06qbZ74rV4nUbLuMLavN6GJpE+vqKswL/otXLBoobUrozGZrh2n"
        "8aENMyIYG7BosT0oo67ILcOgQKzXsl8tUSkRtHQtOzSkKmSuvK8/KtAwhy2zsS+wbp0PMRM2AqcyHoguErEsoR6x"
        "S6wprD+xjin/kraWdazDJNYdkquLLPgsc5aurHavMzAUouIrWCyDpkCgoSi3rD6slaiLIf+cUCrqrJkt26t0q08q"
        "LyVgrNUroakSpA2xmKkQLn+qg6vkrGcrCa1MIicxwBrprQSkeygOrTu0ratqNkYusDHyKGMv8aqCLnspAC7Ura4p"
        "NS7iq8+abKscJ7EtMieTL2skWKw8qGgrybJZtEggpam4KC4t5qsNsP6pwC+TKqYtT6/OrDyvkygzH2SoUygFpbWu"
        "pSnWrc4tvaTHroAT56rpnsmVc63ZsKoxR6kHLCknDy6oKMEd+x9ZKBqpgZkPJvMsE68JK1ErOy3jrKmqZS+koocg"
        "0yiJrM60PCoQp0EdqicmLpuqQ6z8ndwqtJt7LiMg0KcipF+pgKlCrfeuOaapr+wmF6VRpMikiaBfrQsscSw5KdUn"
        "6pxJqfQbR6r2J2ahAqoAJpaw+6OGKgypHKPFqbwnabB4rKYfWKSjrioYoylOrJsnw6nAKMypqCxvoWIkR6B9JOAd"
        "/B4vJyYvnyvoJGquLK5hpluiER0yLYio5Ku4obmkJqmYq3OrGjFRJrgl1pRGsMEtph6QKEMuxqdtsIAm1y5rpEab"
        "PSafMcAf1q+AsUOwb7BuKv+zGC7nKkSs7LM1ItmokC/tsTAy/y/3sgoyRTBvpRou7iUfK3ErNaeGsbmwp6FdKJcz"
        "cSxsot4uS60nqt2mpq1QrTyuNTKfL2Kxn6SLJ1orgaxDqIMwCjWnrs+Zza/8K7KvNqqqrOsqfrK3MxKn9K7qMwqo"
        "/angLW+v+a15Mygzzq2yrXKmIKsaLQA05zBuKcyruDDqsZ8vyqxLNFWsLLCpLOG0/7C1pEqzC68ytIGuDbBao9Kw"
        "vC41Ltmi8jK4rlg0srBjpyW09TNlst6njK+cKho0wrH2s6wqiCyxL4CylDM3tb0zXrCusO6tLqjcqOKwRy4AKkyl"
        "yjBeqEs0Eh2Ar8ov1armMLk0d6i4Nd8YViwlN50qnbHQMIeoArOHKXqylS6HqzQeT7E2Leeu56ZqqQ+tnqzfKdk2"
        "ZrPjLoOq2rDmNaOu5qSSNlcsP7BKMjQkY6/7sC2zOjIdsaywbi+9smap3bABsRoztq2AKgW0ryO8NZunbLIkMPwm"
        "OKw6K16mPao2JvavVCs7rqckBanos8QswzBbrSUtnrBSsLa0lq6xrTaodaqSKFuv9CioMR6uy6cULasvoC4ArnOt"
        "Sij6L10slrMLpB6pbyFOp3+y76sBLLkogrQGLe4ZISjVJlmrfay4r2yw0i/wq+qbYqmHtPGtBi85qeYrnbAnrAS0"
        "Ga7qqSyokBkEMJ0fiiPgLu2sVqoCMAkpnyYHqSmwhS91JTogbK54qh8rlCZnrAmrTqj+rVakdrBwDJwmxadbqR8s"
        "1imUr7qwACukJAYphKjPsWEsDy6Qrr6rUa/JJFOh9K2mqK6pPhGjKCcr66/lrpSdkinVLPsoDTAxr+0cl61eqseu"
        "RCgnqPgm0yQVnJ8sIyGsK5Up6abmq3YwSC0Kq+ctQCVxLB8pXyvALSYp9bBSLkinwyPjLFeyea6vJF+wuSwXrzCk"
        "i7B3MF2ooik/KH+sKisbJZSuVSpZssykwLB+LkisQypkLkwtDCfpozCvCqmMqWIqc7TrMogi/SwyKCCmCrPnMgGv"
        "niJ4JUGuq7WjsGuxGLSsoTExObT0q5OxVSGSo6W0GTMZsu4vkqzEJxYmzzEJMTOsZ7RItV4ndR4tNCk2krA6sA6v"
        "iiohtJStQaaNM0g08K07tPgzaDLQL5ywnLD5Luu0wjW6LVkxX6oiLZ4qrjHKK8qxaSvBrjW0oCylrnqlPTGltaIl"
        "7DWCKpw0zzWnrEktEzQiqp8wHK1ALp8vfimcK5QjzyV9pjUyl7UGtqQtmS7tr+S0Bq1ENkOyJSkdtRQwBC13MBKr"
        "8LAKNUY0bCmYKjg2WzEyKoM1DTSRsDywSigbrq4upLP6NWOp/Ta3tl+wMC6lrH2xdTR1tuAnFqAPqCsyiK2wqNso"
        "yLU4LqmoPa40Ln60ZrXVs/ewwywlLgSy77KFsMevfzTttLC1aKTpKdotSbKTqpowCq+NOF6y0KeNKZQtmaQhIFSn"
        "EiyDp6kr16l5qhkwSih3oQyvFxzfJdUrRibUrYGv+iQup78sGTSVLeemQyjosB+x2yoVJ3mp6Bz2p4qsMi+RsVus"
        "IrC+LxWs2aorreGtYq/IqMCtx7eBqU6rYyxaMbAsZiTFJuqrxSzbsBc0ga47MF4vgTHsr3Kwpyy6KkIy2KGjrmos"
        "KapZKYKYQab/LNyx1i08sB8u+qyjpNMs+iwHI4gnaKxRmZcwFy5GsAgyHy68q1UpiDP+LQYweKSrs8acTilWL3+y"
        "KKpTsV2xkTB0rUul2CwAMA+tQK5dIIm0rKY2pJav9iIPMWiobqxdoSKk16s4MrarbqiGrN8goS/7KpSiHqxSLiSm"
        "WqnEHzexvan5IKmqsizysPMtdrEANFqFoC0ssGwrzCp1IICqYDSSMVgzLC7vr68woDDvq7gzJiuSrfouF6jHtL6w"
        "azCprVyyzaYULIQoXSiUMukohaFVMISwla8vsHAlrS2bMq+l6Z1QMaGpGKi+JtItAKNeJQcx/y3rr1MjeKxqMW8c"
        "aC8IM5mrGi2gpgAvKqwRqxUyCSU1JImipidesL6nwij4KwoqkiscsPEr0S0NLM6rF6twr/2tpK5BIBOtC6+0Kw2x"
        "dyu+K3cp46BrrCwxhKmUptMvUSg2KweupLIuLdaZqqrEIQwmfjEPMT2naqxgrYO0QBwFLHeTlKb0LRStH60zpqud"
        "WrH5Kt4vLjAsKt0xOCWqsh8tUanDCqKnly1vLxosjC0CHXesCyydMtwrcidPnQWxhqJdKWOrjCnhLAysvbBWqhKu"
        "eyzokm2kwy41JfWrzKTWKAiumSU1J1WcLymxJTyaxSLTquCsoyzoJQyu6CyPKk6un63ToZak1x2jKPmYfqzosDAt"
        "rKVLJrkokyzyK6Yjmh7QrkGppSD8qN4vVKjKLY0pvifFq2ms5immrzqrZZwNJUiwwiqDLVUlwCkNlQamT7FoLhgl"
        "7CwirNmqbSd7Mvak/CanpBMyZqtgLDcrqS0SMpsteCg/sMgsN6zRsOSxyKD2pIar9adnKbImjKg4NbKw4K+ZrL8w"
        "TbRXNC4o4LFRsTEsGCjinpYfIqjnnEuwfC9MKvgmRi/Qp7CtLacIMXI0uS8+LIsphZ2zqn8wPy4CJuuvxaq2Jicl"
        "FiEwpootIyhaIYMtjSRtK0yhpadAMDgqiSpNKAiYZKLFLZmvgSj+pLKmBa0rsUytJK9PI2UvYzHro6iq+CfeJFGn"
        "o7CGJJgvvC+dpqyuVy3bLxIq7ipZp6wrMDD+uCms0TYQtK41+itXqS4qvSpfr08xp7S0Mswo35z9LOm1ZjRSMiQu"
        "njNJuGwoyCdVuuAoVDX4tGk0A6IALikuRzH4rf0wP7S1MvMMtSw9lEe1qjRkMBKqiDFeuEojvrLgsi2yz7HuonCw"
        "NTQ1sWIjzzAHuP+1Ra37LBqjHTJHJa2yjTQvppAp8q62s+YuOCzCsAGwUywwrOghmbDNLLCo8yXuIsgtXrOhOKgm"
        "XTSKLFKfiqsXtGe5n7IUtGagJ7H1rfawlK1yo22XKC6bMaMdVLR2sqWo5rMxsG2pOjanqM0tia4ssnKvmZxAMhqt"
        "KTLYLEGtu6nyLnAwCDH+s7wqLa3qsZanVCWfKaov5S5grIwkTDGaMRQ1CDMNMMysF7BxMAYvcpsqKy+Tk7SsNACz"
        "Ma+2tJ+s4LY/q/ywALZErpKo2bK1sCCyjzABMTm07LXQMAQzQK9NtWq2Pq4iLHGz/qS+tAy0vC67LKowq6xMsrIs"
        "PbQ7soUzLi5VN7GjgDS9NN6t96s8t++xyy00OduxKCwfsvWvfjPSI8SvnaZBNdixIay1L42xxjCTJMqyvKtfLisq"
        "kjFFtqApzCxcpSaszqzmsS+kpjDuMcusgqtKp9EwZCTwtmW1i6gTMTiyFaxVNYkt7i3BKmKt7jPyrtOw16Sctakr"
        "/zQeqEiurax1J2e11DAjK0+zNxZWJ8yyyyTOsi0rKzMHpVy0jqSPLIQwcCEzKFMtvysNsOmtNKXoMDsvnSppLsos"
        "byVerSIpLyfasfQvlTH1LF+prK4TrOAmI6sSqEEuUCkbMIQsVjJBMiKwjayYMo80OKUoKFwoaS2hJeImJKfzqQS1"
        "bq5dMeEmVxk6JKajuqMHuHGdgLB+KnAezi4Vr0yxuSAjJ9Ioiyw+LaQsTC8tK9gnTzCdLuqkXi/9rCunDKKBsAeu"
        "Gy3vK5EuaqVcr4i2nSo6ItUpWawipi2hFqa2oHquc62NJZArlSrpqbilAS0BpEIkyyMJqVIs3Svltm2sFyiKKFap"
        "h7WaspGu8yONra4vxallqvAs1y2ksGEtTDAULPGovBvdsaCqQqtNJU8v0q3eL22t1i3vsmiteTC2JB6wqKQxL80s"
        "4rENKkWx5yxkFcQwQqfSKwMgPahOsAYwtSh/Mm6rHiT/r56siiQ6rRsnFrMHLlcrE7GcJHYsF6xEr3QcVR6cHsQb"
        "Yyh6KRAz0aknMTmp+6iELMQmMjCYJZsp0a+qL06seh9WKq2uS6YwsNytKLG+LJ2wKzGQK8syNCeuqSagQ7LSKX8k"
        "AawgrIEtbaz9rKgtGiVYr9Am4C1IK4qu9iQxJRuagimGJkWlk7H7rqAswDDIHU2rrjRgMPW0PbRfEtqzmakCpAyz"
        "cS43NEWcArEgISSr7669r7wzNa1Rq6cosqa0qGYuki4UKEO0nam0sJmp1CtgIoKvcCjdMDSqfjD1LdGryq/+mkGk"
        "QKjXJFOqSZ38mUEpk6ShITKqIC24pQ6gNKd4HFOcuaA3I+qr+qjnKXUpb6bTrSgmLR4EKf4rOqchL5CohyoxLVOk"
        "mrZAKVgwpi78sNgyVChMrSCsMSs8rRSnHS7ps+Iwki47q8ik77k3rMyet7E6n3UrBy/Gthqv7a7nssSe9ZFTls8r"
        "JDXGmrCuaqanMPQvFphZLjIsqS3PLUMqgqdqJLAnqzDYnuGupqhZKkWwsywUqJumriutKnomOKkRKiOwxiu4KY6s"
        "dCPuNcwtQLK7LLopAzQwsESqRKmIq6kgJLM0DPKd1ygxLlKwYhzUL3gxTjAbuFWpdTCQMGiwXLCXLCIpwCj+rj0s"
        "piyctA4yPzN2sua5tTQiuQKeJivtruCycLJJrUq05bVptP20WLObs4ekDLK7r2kw3bBlsQGtebKUosgrvjT8I+ms"
        "3SZksNq0CC7QLfi0U6PbqPEqG7BKML0s6CUPrz+qGS0KI4w0zK05MNe5EDAIMHimoKKrNa00HqOPMxs1QqRuNHc4"
        "nrSgMmYqljaDrRowvq79sPenZTGJtMGuqipgsV4suS6ELuiqSKnmtkOua7E2Ll62YSj3MRQxNLTpMCMnAi12rmws"
        "uDBBNGMlO6MkM4atsiQJsDywl6vpIYU0EzOEJJGPRKpWsf2z6jMGNWyPPa0QrBmuB6iwMX6rT6xcLpeywjShs3eu"
        "ubUvrsy01SwaMT+m4CTxrRWXujGcNjA0Ayrap3WyqTAdrjuodq+vpTG4US6WsRu0bzAuNpSujKwONKsuirQMmik0"
        "DS6xokGxyK/Ys3GvTKS8MVGrw6rEqeCikLRUNCMxLi0zrCqvKbTxMgokMDGyKBCseS9KqqGogaxZtqKuhS/fsaGv"
        "N7TPr3qd2rOaqNgwLa2mK64skazyLpCqk6n2IXyRHLfUJowzkSivJ3wbO62iMzUw4i8qLgSttTJiHCijPTD5NMIv"
        "KzPNL5SvySkOLD0tvBHJrcUxT6z2q7C0aRv0r+wuSKw2oYAtuS2qHOEs66x/ss+mFifoMju4jyhmoIKox7FTLl0r"
        "aC2MMCAoQS7sMvQ0bjFdNKKqnjIkNgyeYDXONvoo8SpRKUA2DDTcLSSldCwSMxijtq6HJhSyqyOWtNW5b6nfr2qt"
        "MjU2LaQyazJ2s6mmS55LI660STKZqNkhLjA7rgUv5S6btNo1OjQgJTaexLKnLqAyIS/ZIKOxQbF6NAwwfrP4q6Sk"
        "wi0SMmO1f7FptHIje5C3thywLTLKMAipF7SuuEwwe6UesBiw0JC3rgWvBrQTtaaxDrM4rha1cLX6pxUtDq5WKB+t"
        "uKNcsRk2XzMFNd6wMK7QJguzh7gNsTuwKKafIk+x+LTVLx606jGHrhquFKhfqPGntStVLOErH7RbL5SvVrEDrkap"
        "FDJsMXgy1y2+qfY1YbRls06w3THDregi"
    ),
    (
        "Oi2FK2Of8KZfL7eskKTfL+2yvCgpLBEpzKiErCKoEbLasE4nbKzgsA8sALBZn4So4rF3MEavUauFLcctE5ulsdGw"
        "Xi2GKKOtHqQ6LD0zry9yMoawNqSprPWqna32LZevVrRrMg2z9qxVL1gvRy2mLaAq4ymdLQusGqlyKNEzNK6mpR0q"
        "C7KYLw6woaiGssatdqxwqQKmk7MNMsYs1jP/L5izRp+2MWguQS7krmK0tTRDLyq20K8yrPYzLCH5tPanQawkr4et"
        "0iqKMIMwtiHTpe41qSnVuKi0fjDKsNO3MDcbLfmz8aqVLiCn2TSqpxEqXq51sDivZKm/Mi6tsC7LriYxvyVmspir"
        "TCcXrWu0WDBRLXms6jDxrKwqVjNQqceqDa6FMsaznqxwK2+x4aZlLNA1O6xgM5oo5rDxLDg3irr9sjar6irno0Ye"
        "GyHkryKzSqpiNzKrb6yOK3Itg6yyMP+wySolM9GwEikGKbox57JELeurH6p4MQYygaX/MjepKJ9xKuertid2riYp"
        "HqDWIzsvpqx5rCIgEq6Boeat0a/qL1OspKXBJJUkfS1sLswVgagPH00oxSIerrCge6n3LUQsjS59qM6s9ahjpMaw"
        "uyyMLH4hJ61hIjAnUaPLKpWpPjCFsKUlGKWxLVwxoShaLEmy0qlZriMxO7ExMFIuf7HiM3uuEKgUKxIrECxnMzY0"
        "xyTsrEmvhKzbKo4z/CUHMJExLy3KsXyZzq26qFC1wiePry4ufK1OL1MtW6pFqIQtkiUbLxsqM69tKfwsUC6PqESX"
        "HykBJDGwurEXL0mqRDBZoKwjRC/zq6iamauCK/yt4SyqLNGseC2yK1ShMqeOLU2tLivBrkyhMSBipHiwOi1srFgm"
        "FCVCpHmkHS5xKgQgqqgQMQ2obSUqIBQwl6wjohIr66jhM3kpvy/PIhol/BWDJ1AuvSqJrKYeGCW3rC0qZC1EL/ap"
        "aS1wKKYwo6v1HPkotKuxMZou5SklncMtGq5FIYQmUixaqA0kg6uPrmooIBm/LP4uXqLBJMgOAqYfLW8unKh4KcAl"
        "DZcfqcwqr6dYoeWmPiobLbsiS6TiqqKXv64AITWkGadEHjmlRY+NGDIszqtPLU8g1CD7JpOkxKx1pNSuVK0/Jsym"
        "8ikqKG6paS5sMWsvFrLFLC0xubAFs9smWjD6txWogrAUMuquYrF/L5EvFywIKgkuhzCSsXasGzPLraWqvaa6qIQv"
        "RyowHlGrCppuMIakLbBuHkC3Ci0JKrmtRy5IKGambRqYLc6k9i3oqHSi7CqEsoMlGa5dMAmt3qvKte2sWS0PsCMs"
        "pyc2MlwxxKK7o1osA6X/tQKp0KYpr/QxcDVbHXSyt64uJRYvljBmMdecgZr3KKosBCv3NFA2j7GxtF+1sK1JMYy0"
        "pDF4tLArCLPIsDyuVzBmLhQu+6uKsoKxCCyqtrIwuRokLHSsHjBjNOkPbBhlNtgxNCBKLEWSPStUKGY02i1LrGIv"
        "66qyM8kO7Si3Mj8xcK7lqkOhhakZtUAtpp6dL5itabHuLE+XGaq/NHCtrKspLDiyQah7KZUuzzCyrB+19LVPNISu"
        "Nq8LrIsyNLJsrdW0iiRmtO0iyqpYKgmuZbMUMDcxjiF8p22ykDHkKEGvvLSCNR2xN5tIqMKvu6cBNdUntSgCqoUw"
        "9y/fM1StIKq/rC40PiH6qtuqRCzTKHYvC7FVM4K0cjC/GQmopiNwLLGlJqVCpxQieK1CLUSp+7DRpfwveCApq0mo"
        "2SxHrskoQpZQJQytwrBaLdac6S0eKH0r9KburSAwaTGQMqCsZC8upO0wipfsqa6ofCx8LF8sgrC8KjGwyySsnnar"
        "Gi+vMFKszpZoq/QqBigypx6tfbJ6rr6odSr8Jwey8SqorEUlWZRXoRemgbBSJZITpSxmLqGtIi2TrH6gVyzFMSKo"
        "fizpqFUwoawlHrkcaa32KfepASSeFPEmPTB6LTyumCsAITUshywCs2qz3S4wHPGwl7FzKIqrFqF2ImIipa1pJIgy"
        "S6x+GtsclizHLq2sIKjgLUKosK8MpYKiNamuJsYqJS6NMIUrKig1q8goaSvuqSwwtKAvLdwyuSwrJWEsejB0q0Us"
        "DqwfsmUjLyY5pwolVi4TrxspyaaqI1Ct7qR5L9kxISzyKHQpkCYuKXsvMi4ArOYrwKmPtBKxMK0DMvKzySu9sB40"
        "+ax7Ma2zSzS6LhCyfJr+MB4suK8opQ6uKq8hKYEvhLPJMaEw8jGBrDAyX7F9KcIyB7BONL6xDzHNpEst0rHxrxiu"
        "a7N5qKg1ZDTNNDWzSC7XrkIsNCiEF0SydDHOLmimBTAUtC40U7NnrgY2TDoQMUmqFi8jqbCjgSw0NR4uKLB6mLAy"
        "xqkvrVss0S98MngnCirAsb0uW7b8q/04fzgCJ5EcQC8aMcAqXCwpNJGpUDTnMs42VLYhN00tyy8XLTGuwjJNs9Go"
        "HKbIsAc0/rZqtm0xwbBJMxwybbfENvaqCLJBHaQ0kxwJM9+u0bSMNNU18iu6JaWtW7a2MyEsKbTGNVGx/x7MrGSx"
        "C67LLxKy0qrCpnurNbKGNWWrU669MQSYyrJTNG2xEaaKNdy1gbh2sf6tja0gsHWrnLFBtU6z1x17McMapSmSoa2s"
        "zShnJ9ymnaihKHiqUKNWrTipUKtJpaWxcpW0KewjjqB2LVOp/KzdLAesfrEdIhqwUKhOreQvLa0urYaw8SK0oE4v"
        "Mq8/JBUwizFLrIapHCqvr/mwlKrLsYQyTTSwL70vHTDUq/sxJi3rKzOkzqZ4MlCuKTXrrQitf7IHNG0ojq0bNEMp"
        "dTD7sT8cViqVKPYvLy7FrnCzJiwaqEKjfSjUq0KwOSyyrL4x4CgVLvmrMbAJLA+nszC9KReuqCzispmtua6AOIIx"
        "xLRnskWylSu8LWUunLLPtaiogTCJrNwqKyzCrbqxMbBNqziv46ikIQ2wH62TLWIwVamgreCvKKseK6+nPi8rqHSx"
        "05sAplCoky2BLJInlS31MHQhtK34rlQ06a6TrXow/Cb9IbAqyh7SJX00K65ALv6mUaejMSGpuq4uMgEuJi/IKn2i"
        "e6xtKr6vbS9Kp1anPKxCLO0xL69bk2Aw1DGxr2KxvS0LLEQquh+/tUkvY7X9HISs7qQGqjgtaCW7q2arS6DIHPwc"
        "+ZfvoF8cLa2VLNsztSiBHSwt6KgisZoy1zDQKj4t7CoTI5yrmzAbJ16wBC0/J1yoGZpVqvsucjANG7WtWy3InXev"
        "mq7IrBmtIB3NMP6lH6X9q6cpFSRcK34vaLHeuBkxpaf9L541CanIL2awlSvLqB+sxjCFKEsx8SmoIwYwdqklKHKl"
        "/S2vGvYvtij4KmUbjywEKCEmpS37HP+ph6IvrPovgqSDrtkveS3mrq2sZaUzpA2wsq7JrNCplq6gt7Eskyz0lD61"
        "aSpuJC2oezAUlfOx4Cx1I+Wy3651qdireiFaqEipZh67rSuuIqE7MK6vvi0NoIowRqypJ7CyObDGJngszyg2Lous"
        "jSkIKJUwFi1ppH8uESy3rjYqq6ybrQ+rmipzJoqs3zIuKaIu8Cqtoo+vsKhnLp4r8aGbMBQo2iuaqSgkV6oxpUAr"
        "La17NrmpwiV8Iy8wbbRnIeuygBYvpOEvI6pfqZMnRrQELHCy56eJsjUqN6sMoXCyrSKBtEasMrEgJMAskK2eLdSs"
        "CqymsUouwquXpgqpLbAAL7Az0K2Prs+s9KpbnZE1+aApLHms/ahfGUknVyn4rsYuJS7ZMdEspyWcL9syOK2OrAKx"
        "76kiqdWqIrDFJw+0qKUKJFgpIKKmqFatXqyYLaaxFKyinIuwFhawsdsu2iK7MLcuGi1tqvmxaSqsrgu2jgbisFip"
        "x6FNH+uunjGNrxe0obFqLDYi7C63KYmvsDO2MWepiK0VtJasrTW2sdGzWCU4ruAmJbRCtagxMTUeuOU0HaYkLOQp"
        "0C18LWw1fzK4LXajzK2VssGq0jPBrI+sARiUpCcdpbS6tQsxODZtspI0e60TMYkkKSpIKfI00KnrL4gu3jCXrbwk"
        "R6GQreMt/awcsdqxhjUHqDm0OjXplcIsOLCxMGOmySqYLn2dPa/5r36mOLMQs3sw+rEluJ4t8LT1JoMlHLLYMwO4"
        "JTaEM7kowqpFKHqy8TLQMGqrpLHftT6yDLFeNLost6p0KcKuvrDjNLurIamYqTOwaLajotat7DLCsLYp46COriyg"
        "FDAINJ4xGa0vMKcxtLAqlSS0cLMmMAswATD5rKo3rLbpJ3ExTavELIK0GLTuMKOmOaILszaxryweKhy2NTC1sNk2"
        "N7EMMfCyljT4MQ+zGKxfne4o7Kwwsoec1i/yNJykI7gssFqzNydksa81L6xWslQxabLANAGybjEbLKu0jLAoMk8n"
        "pLS5JIIqa60HNPiqSioTMca0j6q0s5Cy2K5MN+E1fbQCus204CQAKdIzhqk+t7CxQy3fsfQzVC49n3Kve7estGMw"
        "Aa4NsEcuRbC2Khmn8LIBN+uyp64MNau2c6gOsAOsba5NsjqwYS6BqcSx4SqLssOk2C/SJviuoDOGNUGrX6mXr1yp"
        "cg1WNMQkN6XqMUEtMbT3shu0AzCMo6qwM7Iksraz2qz6prWmwy/7p/K0ySrALLCtA7N7JpA4jK/pLdiffS0Nmk+k"
        "8SvxqKgjRjCEs1QnBK3DqsgxYjCwsS0keC9tKgYtdbJzrvKiOy9irkIxaqgSpmgvkKoYssUvLakgLlal2SgpsN4s"
        "NanDsq8sZ6zrKOGu4zDFo02wD7DKLpepWKQVnakTHCzyLrayE6ShL0+0mR+VrlisxibDsQesIg/+KY6oziZkoAk2"
        "/SvKIe8oDaxZLAwhpSM/LrKwCbDdqfyfFavuKHis9qwFKW8ttbNPKzWrTCxTEQColLDRKDymW6zKLLsdjK51HAGr"
        "UhcQLpMrb7FQqZ21/a2VsjyqKS5npPkt5ixvrY+zNy8yqbaohiizLUmOOR+FtF0tJrEStPQqkLINqx8l8iggtT40"
        "6rUHNqUtSLHSLAkdQCgHLGuwQjIbMZWjAK66MWunSi2LMFItOrDoqTAhsKTtqYcvirFBMxwkm7Bhop6z9qwBru+z"
        "4zB7rWOo+C23MhUoRyytKNigeDDWJvWkgx9cp6qtfTLnMYWwMDIcsOQwNDbosGAtSLBmKqQY5bAHMX62u6uVsPQo"
        "hiwjJxGnQR7qr2qy9yo0rwcp+qFuHgo0STHPKagwGa0JKRkvU7AYsKIrCS3CqNuyJqUnNPM0SqjfpTWv2CnguGG0"
        "hy8AqSO24jCFqNeobK0urISpe6yDoHWzSzBSsg4UaTBvIX4opygWqKcr7CQrtJApnqc5LqWyqClXKqOqTCt+q2ip"
        "xKucJC2uHa6FqeCsvx3KJAkduCf2pWglzqonKWasMpwLI8YwaCHZJz8rYSxyreQxIq2iKm2pgKm6MKgmf6mUo8Ss"
        "eymbryOxAi4OMz+liC+xsLwzRS/TnKAs+60mHNogUak+oDytza81pOUsFZdCKm8wfigGuKWoTSovrzMsCyiwLSm0"
        "i7EYLF0sRayTrfGspa6tLIAxajBnrnep0SASLROkIqdHt9eqGCa/si2n9ZfAKvYvbaT2Gg4tLhalqaQhMSJMDbOo"
        "Yye8LVKkCbCVrxOwcKCRswMyii7KM92dejMVsjs2hrAeMJguhKpKrhwufzAALvusmayur6swoSy8rZetnbNMIJ6z"
        "BbAaqaopQrRprfYx+zOysAEiTbHgLnExKLHirKIw8jIYLvgwLygKswWy26rSMC8z7q6wMG8vP7BxJ+irBzAZtWQ2"
        "nzIyKZI1LKkgrBmsvqL8tseykSc1Mrcp+qb+LRQoSC6SrhYuaSLPI5mzRqw4M12z8rTyNEA1o62MrKAybadxMCCz"
        "tzHPIImzxbMTr8kzqTC/Lqwyzh2yJC82Sq8+MhowvrD6tCQ2fDQisy2wWCnPrdsoRi3rsWu1EazqsvCw2bDRLrmw"
        "c7g3KB0orzE2scE2GjVYs2mxqamKNFc0rqWasCIt5zMvsIUwLbgkMxOzD7Y+t94x7qkDLKChoLZALSu2+S5zMBwx"
        "kDK4tCu06jRXtxiwRDP2NJA0dLEnqCCorDB3qgu1xi7eo1Yx2LCCsNWzR7Vqt0WpGikYrmkqNLGyrPQnXjQ4rA8o"
        "8bETsp40aS2QsYI0+Sm8NdWxkDFutXmrX7Daplwijrh+Lv4seqy+tCgwia6EsEm2j6/nuA8gfC+AHvKsSrTwqhWw"
        "VigRscQuhzj4sbOuObQdJhCxXihCqu0rlazxssuxY7CsrbkuhyiuLN0q8DK5rpetHCyEtFshBTRvMiC0fizELEov"
        "QbA5sDcuqaTPKOOxbbJ5MWImSqvRsjcpTLk/sEys5iiZnT63YLRWqZauyyqMrv0qHzRqL1eyBLIrtJYv4iQpuBoq"
        "Pi1br6CuK6t0M2EwkC81tdSw9SstIMg05DF5M58y0SycsZuifC+bKluuZzD5MaIzUSnWMFKyTC6Vr5C1NrarMVEx"
        "VrFhMEIxg7RktzAwlTjCNMkpA5G5GAeuJDLtqEU00bNWNUgxEDPIMkQvAqJZm0s2/hr/K2msYrQEGp8x2TBttFG6"
        "h7Bgrfco1rTErre1pjTXs6UuNiFlLE40XrQPNWMxrq08NJYvPqNxM9UwtyZMMgew4C3DLYOubjSkNiKw/ilUtbOt"
        "TirAs8q1hK8buO2zZSRGMRu4JCluMakxka0oqrGr2qi5Jbuwtq5usdOy37BYLJCuI7EpqQwxKaUQMZ2uULMfMFsw"
        "dzEJststjy/uLxOxFC15Mzwvlq+wroOq"
    ),
    (
        "/Z85qruq5Cxds8okCjBnrj6kfax+Lh+mLCAMKO2wzZk+nmSvlizprrifcTASMa2uX6icIpomjay8NcmrvCRwqjqs"
        "fyrAqRCzG6ziIm2gkK50MicpMDC2sP0s1qs/r7S0iqm9pjwtUi8lsqImdjEorMitMi4FpqkpPql4HxOvNqthpxKx"
        "yKlalXCwLSi1r7ExJSqOL5kt4rEzNtYW2y7GLmamOaGpKXssyTMJsd+ohaPAMSmkZK6hr9Kk4yQtIiO17rKmIZ4s"
        "/7KhLxG07bBPr5ulaa8ssYIJLakDsv8tKK7ILL8uRK/kqj+yqa0eqBSj/yf9o3WpcBtErSkmJrH3KW60q6YcGEur"
        "NzhfrIIsN6mELSivb7A7JRoxeihkqlOtyTCvpCWc3C5MMrgt4SdQLnwv4StpKResKClbmMiXArJeMrQu7ivlLpgh"
        "ACxdL+Kwwa2mrL8siDXxNVssUCqmLykubRpdsGO0kbBasP4w/5BZNC+xRTJSGv4z36wJq24lzBuiqX6uqCXHMG+s"
        "J6v1nm4jdKnlHJOf4KzJqbMwBRxBLRMs9ifjIrQYaakpJBmyW7DBrbGvyg95qGuwxK6+r38jW56IJYYpwqwyrWoo"
        "QilWMWm0NKAnGP2v7ypWsJsq5K2yJaCsdq+mIKsvMS5AJXOfX6c7IN8wkij0JBExhCyBK7SuEi6RGu0tCi7zqiSq"
        "5qg2rEIl5CR3Iuesrazur0EsNbKmLN8qbarvtPUt6jCqsKK0eSkxMLunLimOpGSoEqRfssEo0CX8qpkWx6XOINKz"
        "6bHnLMqsZC1GKw+xgZnQoeqosS0OqvkrgKQQs3gtICwbJVMpkLENnVIoCiTbqCssBi9gnkWtNSRjMh4tuqNsqS8v"
        "YKXjLcindiDFpkcsV56PrEQpm6F0rHasLSbFLKMkcBeQMMOo4y0tqcoswiYEMLKthaXAqKybtyQaLhUtvqAXrJih"
        "lawisBOskSpMLWkjHavUL3Ekuy0TI0GiAKrhH/qva6w4rIOnQqKVMO0pgicSpWokZisBp0KsjKw8qB6kUq2kpZAb"
        "pyoxLXSrYQLTrlEkZCvxpyKhLyyeAH8eC6yCKIgYPqNJHo2lDKwCJU0gw5w3HIQYYqp1qQulmiT/osmqyyp+rWOo"
        "FScyrTQlBizXpGgv+x4JMIkewC4tK66w5iWmMrSrrC9ELFCwFaVLLSMwBDCgLv6wRCYErj6ueSn1oJEo4C1RKC6p"
        "nSZ1pGGlhScxpqSkLbADMa2k/DBqItAnzinoqUykErK4F46s4ikLt26prbBgLya0Qiu8KPcwWKS6rYizgLh2Kk6m"
        "fa0Orxos5bTfpCarA7M6M+gwiLGBsWu17q4ntSmeXDGUsBYhRrPOsjalhbNsqOkyDDFQr+Sww40Ysfyp4LJntjMt"
        "fK+aNJwwLSzbNLurOq8BM9mcUTGBsJMzeK7etioyfTOvq1CwmC7tK1KsAjBKMwaoOS6IsqCegjEVLx8sCC7PLWew"
        "cS1ILsshpazhqk8ufKzLMT826ibsLyYkijK0rYmu0aV6rNqpV66eqeurNDAmrJqtkrWhrZ2pWimUo4kgT7HXNNSx"
        "ZByksJ2rqqx2qVGU2K5BMdiolS/eNIitsxCAKBiwzbAAtYiywS4ttXMts69oOLslli66sIEmkaR2jH8vySPAsuWm"
        "N6OaL06shK37HgSpJ7ANqwokhTHds08lIB8lr/+b6C7OsWyq6K18sWUnMa0ALaatNKpsMXisJaYxqZmssrFWrUat"
        "UiiILwgsTa6DqSuhjy7QJYWdH672qxEiHawXsKCkFisCLkWtLKimJAysGiPUpQuiiy7IsaWvE6yZrheh/C7ZrPSp"
        "v6KLseCnrqwlMjAr6K2yLG6cFSqJpMMrfKnNn7kdyiKyLvmpqqqfqWmrWykarocp/6nwpl8tvaxEsFAmwjBprgyt"
        "lqSLHtysWChiqW0faaOOsXyqfCPzLQwiup6RI6OrHim8HMgmAqhMLAyxJCFeH4KtVa2fMZcwDq9DIb6x1y2MKKcr"
        "ciptMVSkhqjEraknHSzUrO0peS0Ts6ueR6nvtJYvIqXuK9qoWRx6JmQvMC5Mo1oxWjCqkYux5yzxMIYyeCXpKhqs"
        "ORjcpoOsTiN7MncmLalLLWqwY6yJGk+gVyWfrtujSacYpxEvHq8iLn6nNq8PrmYqJbNUqJCxhLEyJ+Oy163HpXW1"
        "9S81qPatuzV4tyQcRC18qyezSCYvLHgxDau/rbsqlbSCsPUVPy+wuPQspbIcLV+y/axyrh4yDDBUNa8vVSwpNzer"
        "fTMltI20ZDGCM3MomjB/qTChGaxZtDclBapEMcAsbLB7tK432x0xJUotqzAntxaxmzDwrwOtMB3rpPWv/jBcsD2x"
        "PaZuNGg2ITC8MmQxzaqEo7UxMrFVN/kwEq94tLm0JjI6sPmwpTHVK18iEyGYrt8wMrGvNpI1KzaFqmoyMDD3sHop"
        "qjZ/q0u3izTasLqwKzaYLhQyDjKFL4e0ma12qoqp9jSkN6IyJjGJJHGtuLLktV22map3NtYurrTQNcmt+Dbsszep"
        "iTOAJAY1nbJaKL6pQTGsL/CnE7ClsXa1JKyzMIm31DdGKvusrbJ9OuetuLMqshMeZixZpPAvFSwCKrmoRiTlJr4u"
        "+SabLkIqlSvbrcwkiyrXrAgrYSbbJZGkgqnfLPCoaaPsIcaqE7DiLiOk1SyxqjEyLKZerdEsk62IJkmk3i7YIDwu"
        "L61TLbUx9K0IsWYwSrJeHQswdiT8nuAhDLQWsi+vkS0PL+2yJivxsMIvDKGSr4q0xxoDrtItpzDIprKvPi69sgS1"
        "jCxWLh0qWypkNwcw8jR1qVYrgDLKMjIgnqyopyIwjDIjNCo0p5hHqKsLoTAaLp2ttqzOK5+qHzKYrq0zpbESI4Ep"
        "s65vIh+s2h4kNyadAKOFLeeotbHfrP4vI7DBqSE0s6RWMLks2yr0J0cuXK2MqwIO67AXsHEv2qMULNEmhiZyLUOw"
        "9Criqpkwx6x5JMEr3y+RLXAqlrJKNw4ykDMOKv4tWzBuLyCuqa4gKCEhva1EMYootjArJSqqsi9gJYgpiKPvpuOi"
        "8qxhtHwrQa3gsX0f16hHqHYfETBCrJcsw5lfsYos3bB3qT2tc7FjrtaieyeQK1Gs4K9xKWIrAyVntOygaKZ7LdEn"
        "cyzkq6ghn6+dKwixL6rln7OwiTErsawwGywsIpWjly1Fra+s/igwqN2rZ66cr48tmaXyI98rsKbVqvYwcaywMN+g"
        "Wy1JLP6vKS5ssIwndipSsaGpY6wMJcCppqqUpXMtXCuaM6MsAS8UqPMubijkMdYfYTKjGDevAi6GsicpYjDcosix"
        "YCTNLGEsjjQnqrijHC2Es5+lHS2LpMyz3q/lLeCqGyktoJcmBydCKjecWSX6qYi3Xq5KtEItdywSLc+ySTLjpV8w"
        "L6hFL7o2NbCJpfkyxKxbJUkyga5EoLCfWqhMsFyoJxrSLHwnMCvtKj8kGSSlMp2kXq+kqH8trivSrVcuDqw6nhwo"
        "T6JbrGCu0CiErHihLijNp3+kXaW9ocovWDCULDKvlCE1K+EuPS3zmNkoFKpnK9Igkqsqqa2kzqnDK4Id3igrqxEv"
        "Wx/XKkobUaqorHEqUyxWoR2sXaIELpen/6ysqOsslatqKGiwMy9SMAajwijzqmgyLa8QJaExHKrfMBOhWrTeMw0s"
        "t689rve00CSuLXi18qv+q4cm9LeyJjSue597mjUiQqrep8wqRazoMCOxUSkYrTi2fy9WLHAttaNSracrFqz0ro6p"
        "5yaiq20sKCq9MNqsSx41KAkoPShnr8AmyS30LAyc0xU/rWIwjaPtn2yshSv9KwkzWaftKWYtP65tr+AwyCgXJV4h"
        "RS9hqCYt+SkOr4AxjzIjMJIxhjRgqm44KSKCLkuqD7ettckviq37MT8kQjVENFw2x7F0NGohITXiulCpV6WRNNSy"
        "PCw/KiGv0C7kMc2s6LVeuOYsiKDqMHQv/jPeMAU3V7PGNWQw8zQzukKsALFqMkKyrhxvMhGu2i0RNBOxYLSFMSWy"
        "qCNAtei0paEVM/csiTbSKO0vPpzGmGi0vbSZLFEhPq2dse0ykTLstfSxCrVCpiyv2bT3s2M0J7cZLDspo7OUNOMw"
        "OqU4t6iXTS2bsoUrCy3xq1AsMKQipbo0SC2KK7OuGyPqM5W0ryTksEgvwioHNPC0iLGuMBa0OKDIM5OxyjDQLRiy"
        "lqSOLOawAC3rLMYwsjTBrBUwkzAVKX6yYq5CLC2ysx9KNBAo0h1fKRkppi50M8ItK7VjsbOxnK3ktBa0QbPDp6yz"
        "9S9jrIYvijOTtDct8igZMmCwxStBqpcqAKArqdmq97PFttM2dq+pNZy1pSjVNbeqz6xPNxGnXrSYsNyxErQ1NfS0"
        "ZyhTtU40B7b2tJexUqDXNDMqyTQJsvI0nLVjL1qwGrW8qC+msjI5OXYpyKsuLdOsv7SiKrg4B7QanzM2tbEgoBqN"
        "Wq9ZKqAsJ6zqsn0pu7ZqpIcl+bXuLnCqgTFRNREtxZ+SsCk0NSk5sAitZbJJrR2zzCbIsvIzy6Far8OsUBextOIn"
        "H7EtLNaw9iouNNUwy7KasCyNZbEUs0QmUqLosOiwrTJZsrwso5ruMC8lLyvaJCux+SkBMH4wPitpsrIxxq+JqJko"
        "Yq9VsHii4K2rsjqneqyzpkCafy6GKlYehCFGM+osybEHH4EqPCvOtD8o2aptL66pJyuaLJon0yitrGGsfjHdLTis"
        "lLDyI0wsSR2eJiiveqZIoBo03jBBMWYt3iU7MXwUkqQyKaol5adIr1uxl7CBp5QGA65GMgAs/62Rr04tb56HMckv"
        "mCxbpKiy/SXAqV8slCOErT6ozqRbMCykfC0OJAkoC4SJJrkwLi1Drq+m5SsnIH4s6iRnKIaw9h4hKRKnArXkrQqs"
        "La/EImCqKqszKXSx/66CJLYtDa5fK4Wp0anuLc2sfa7NMaqw4i0tomaxc7A6rNYw5iymHZ6scDDpMXimdqmmJfGu"
        "0bD/sCItJyqSMAqy+Kt+IRKi3ygyGMSsFS/SskewJKTKo/UfG6etqJApG6wQpvWaD6NgrBelNC7cr6+n66+NqAES"
        "mygpKWcpua0dqmSq0K1msQgvYKpjpSO1xLFfMiWwmq82qK4tTLjmrvQmNCmCoTKpTLF6I9scErLcLpIwQirXqPWp"
        "ViNRrPYrGbCnpJ+raKuarDgfKC9gpmSjla61sdaudqpYpgusqTBarZ8tWrQkqXEtYrRTLo2vWCXNrYAqHKtIp7Qt"
        "MKUnMHKzLC5NsdOys6z7sI0ZFbOWKyAzCZmkm4WwlagmKPqqaq6wsp+vVbTMsv0wxKyuMNCr3ahAsTKvaC1vqskt"
        "D64urEyyhaJoK+SmOSRYMY8vPir5LqwUNrElr2moY52zLPCfECxXMeQiwSC+J0uubZy4phKr7aY+rRGpE6wTstcg"
        "eDCpLJAZEirpKS6l0ia6uM6ZwjAqKfwxiyIZMDaYJK28pNim5CskML+tDZxMMm8kICk0LfWtUKMprG+fs6KsuvGu"
        "Fqy0J7kqlKxVqrghaSv5Dpst7qRfKgAfPqDpJkqmHCh5IgUUoSWuq7ON3SydMOYpPitmLKqwD6orIOAxhS19mH4u"
        "+7UOL3kdm7BaKVEjSCxBHj2wOLE4LyE1hqygtu4p1itfMPWv+aqHJk2vma3uKqWysq6prZ4tArMAL8wvWbD+s0C0"
        "Pi1Ls7GmiqynMLspCSsNLxYlOyguKC8vHrYpsMqwWrRmqoYtFKxPpFmv4yfYtA6zQbbINEwotLKzNbq08CzfGIAz"
        "Uq/Lrq40mDZ4L84rDy0Xn8au+THhtlm2OCCjur0w/S1gMqSzHjLwMLKv+7DLLRg2iDFMrr8w5C5MKQCwbTNpNBY0"
        "OTHeqU0pQS30NRgwtSUmrewutitvJQ8x+zEjqDupOTKWsxIw/i5KNCavQS/wKa8pJ7RBMa0xQqyoMK0dPTMpo3eJ"
        "LSICMkuuwTdjJmMtRi+EKX4pujH6J8mlZStareUlFCS3tEQzvylKL+cx7pzGNIgpvp31MmUyryzso60yPa1QLd4q"
        "7qQ8sXq5jTDHnB+xpSyKMvEw3SpBLO6jfa8Mrc4x+DFQI3Kuq7XqLTohFzIwr7Mm+aFCsxotkLOdLeir8BUkMCIq"
        "9itKNQYggiB/rhUwm5jmqlKwV6ktLoc0zqJPKQqxLq5CLRO74CjeMoazzjF7trQsbTEstnGyaimdsmIuHLIsNdu0"
        "ljD4J3Kz2ByHsT6xH7Jsq3c0BDDHIbw0nCpnr1MUJ7LKtjwtLDT3tRyyrS6eLgoyv7IsuEs14bFkouuroiVprrKt"
        "1Sz2p06soqgKM9qxJa1sMXsyZKz5K26vkaNBr2guG7AKsCq2A7KIqvgs37YXLK+mQCUXrSC1CKwnK1aqP6qGtU4y"
        "bSzuLZwuZibGMSitRyzpMAWYSzMxrHqtvCMGMhCwD7LnsJmy4qjwpdI457PBrbWyKTU5LYWwFi7CsHwxOTScMfQw"
        "sysVrbozq7AAL8ogka2GKIUyCy6YKrAts7DVtdIpz7NUuDawbjMotcwtGzdQqN+xPi6wIlUzWabnrJOsLqvssegw"
        "ojAOMx0ZoS8trJei0i1pMsiqljRmmGkzbzQwMh8xoipkNukvQqjgqRwzxTHOK/0uaCbArAmlVbA5qQezhxi6sbmt"
        "9bFMtHWz0TDMpfuo66umqOMxm7JMMNGy2Kx2pjkuP6vQK6urQCwNrqquvR9pMP4uo6jNLIGwbaY9qAatLC9CtOWq"
        "oTLdr2qsIbJvMI+uaLLts3guqrCdNC8r"
    ),
    (
        "abBMojyyh6xMq5woOzWJLFAvtbKTsj6tqzBLJVSQu6VtK24Xg699sGyifzChpNgtGahJqWeuRq8ypsowSS8yqX6v"
        "MaQ9sGOnL7Lfr7wqDS9jIXkwj6wbMK6dsqdHNJkwPTL9MQw0WKhJLSyrODXgqv2wpqtLseCt/aYqqyWrPKv0tEGl"
        "k6KlKy+xLLCrMf2zxqcBKPKpoy2AtTSpmS6ytX2YFqs1NWytFxjZrWcwTaQ6qrYylxTMJtOymy/2MEukdLBPtd0y"
        "fyq1pnOvNrYcoOazEIeunaMpBR6CsS8xsrH1LCguS6yuLjMy+DJ7rq6tA6qULYOtUDDSsA6xMLROsC8xDbJAKwEn"
        "vK5Trb6yW6BtrdcvALHFJGguyjFeLyCsPSxDsoqy5bAvsByvoDKSMG2d+y1OrNGmvyz+Lw+tJq2rMS0opK6nq1St"
        "ja3PL9ywip2zJQsxVCsgtDIlJjgfqJifJC/CqByqLSYaqBWwfbF7KGgwGjKJreYlhScqtJWwIq+Cslanka+Lr+Gu"
        "9zHoKZ0mdhxwquosoiqiKRUwh7Csru8jwCoYp3kwQCViMQwxJyRMLJ2njBjTJOSkw61orF8o2yoopCchaiAKqaKs"
        "hZ95rO2rri3nJ1gv5a4oNDgcQaBIqYms460QpCUqJzdBJUwpGiT8MHQquZNNsYMu76TRqdYvIizgrt6oHCj5LPku"
        "q63ZpAgxgbC+KJwlLDgQMGWowyYmKt8nfqxHMuKrORzQJuEsrS/dpqgmEyxxLsWkISr6pBMnCiaipAClRTRlpcck"
        "SSvEKCOrfK23LJKqmC5eJkAtRqj9JOKmiabupkkgbbXqHJ2ulC0qLSElc7Q7KWKsfy1MKvmnLyxeLXWqxZ1QJN+p"
        "Gi2xIvwutKhjruMvyqr0LAQsTS4qMCmpUa54p4eohR/zLJasqisTMQawr6QAJQ6v/qeXKRicjqyRLlWweiafqNSu"
        "jrFnsIcgaSDlnNmki7D3pA+mCyrOLBshtRxkoeAVESWkqGQtAK3PqkumJyITLTotOidGoGYqZ69Toe2qmSk+opUZ"
        "3yyPq1ik2idMsqSgzicXIVUsCbDgJNep1SCmnzemVi8aLBWpkKkiqGqvJCNZLxQgUSafLP8uZCW8qzurfaUBrLmm"
        "oaY9MN0uRi4LKH6nSCVtLBmw+DdrMGa00STLLLekUrFRq1QqgCh+LIQ0Iye5MSalJDGkLU6xKiy0nzAsY62zrHAs"
        "eKK4qhCpyaajso+i27FdoWooWKhhKYwurSyzMAAp3ysrrfSZRC3bskQkjqH1Le0uQR7xKeAt0qqupwYm7jErLpQw"
        "EqRcK00XzCtBsVW0Ga0Wqjmh9rShsPMtnbERL1s0VbamrjAmXq0AquEy7pjpo9AoCiubq/2x8afjrCWtfLUWN8WR"
        "TTKwtD+0arZGMRKqlC1CKG8r3DGnqDgqA5pFM26y87JesLMzRDDKqjAmIywcrRcu4bCrki4wkzQBKjGqZDaIreus"
        "X67yL52wG66orNOx9iiuM8SvY66rquSsnKTgscsp6a69JL6x17NPsEgw0TTprt0lzyx2K5evc62AoCaznaumLNMy"
        "KilgqtC0TaLDN1qujjHpskyyLSxqqlQtLTtiK9at3y17KEkya67jrKaxabGBqGKo/DGbsQwpVCV1MFaxsqrQsQsZ"
        "GCo5LuojATTMqIAhGSlsKoApYK5iLVisFq1BJhkwiartrSsgTa2sMPit1SrurUso9qIVqU0q0KyPEpemA6wzKcQs"
        "/TBcrl+vVy6gIK6qoSVCHBwrjCQVKqGk5anAqwUp1SaZGDYpdDGtr74ugir+LhYsxbAtKwewgim2rJIltapYr36w"
        "6CItLrSw7KYYK+OrD6l1rqOhHasaKZmp2SvlKYomzjDur7Gu6y3OoyIk+68GKC4t4K1OqnUowqk/q5MriTDiqgSt"
        "5zJgrJctICWRKq8rzrFzL/AhSKQsLJWpca69G7mmI6hFJjSs2iJxLCut3ytPqIWvLidKLiysYKsQpaQwOSSZK5qk"
        "T6FVLJSoxK06MnAsFimFJhcrUKzRHAOsnK1eLsWvoqj9tQilK6kzrV0pYi3VMoMsJ6u9reecbiwtoSc02Sg2JLer"
        "W7Cxrd8peyh6IZao/rNWpw0pdCRULisxuSfFJk+mhCiWpjAtdhbnMLqRabDEJI8rnrPisPutUa4uMJepPiMAsckk"
        "+rKVJL8yHKxjL4y1rbWzsOqsea6sLT0uEDMANk2oCTCqq92xqTKpMTuz0DPQMM2pRDSzLmUyqaR5J9svWKMYMR2w"
        "xLDtJKknYq8fNPQll7PDq6YpNLLGrvwl4LfWsYEl1qj4r+Qv6S2gLdkvF7aNMBQxCi63Mp03SCUdrd6m3LOgJuA0"
        "OLUXLXwvO7iPrKOg6jHBqSUyy6z7MkMz1DUvpIMtGjXKLh01wbWUsSmtq7A4rVaVJLUiMEo4fzV0sJKZKTHRMcYn"
        "RzIdKgqwByKJG4+uaSoorriwhqdFs+4wcCwXrgSzQyDjrVo1zju7MLCvjzGhLnAyRaxMsSup3TRTppixDjazo1sk"
        "ALLvMiO19DVZqyCtrjSXrV6ogT1cLvYsLrQqMfokCK2tsAe0cSybr4IdmR6wLhmzgi73OeOuuzDNLrUvhqdhL1Ai"
        "gqZUKM8oBi1MrTIv4aUsnIase6U9LdQr1ylRLAiosSyirLKmjC6oJSAwGKvHKZ+ZRi9Cr4axFynyqTaoXzKNq9Cu"
        "CDORp+qhrKy+rxQpRy3lLuEyaKEeqaexcK2otGkxJbZDtC+fE7H5r+ewTrWwqwAxPS1FrUqb6bGpMpCtELKLI5Ap"
        "IixJLbUwlirVJz8vF7GhtI8plapNKsqp8Cr4qwcsvqApqHeSlKbErbat3iLuqtMueRWOrJ8rNizKHUqygzPBMGek"
        "DqWWKCEk9zVUqE6tgDY6KuovwTWArZusuiptMS2tbxk4raKk2qKDsMun3LMQoIww4qnUKTEkgC9qq0+y9C2lr7ch"
        "jC93LGKjayV6q5CibTRVrKiq5CIIJfotpjLML7GsJS1Qp80xTqhApH8wVaq7snUr36i5rM6MoKpzsGCiu6ptLruo"
        "8C55Mviv/aeGLJOt+yxMLzaum6mqLjGrmy0npEmtha66rf0n7K1KoKAtmy8Jqc+vEK52MxegPjD7qmmw8yiJtVWh"
        "t6mqI1akfys9MtcuNCTFJVYk5DSyLHOs4JaGLIEtlrA1pKgsMi3eMjQp063wsk4vzagzJAotNSsxJbsm3J+WMEgr"
        "fy/XnG0q4qWFruMsNrCErJOuzy+hsFqgC6iSrQYYkhSxIJohlyzRIxkkragsIu4zoyzzseGqfCXeLAQuNDBDMzQq"
        "XTS2rckvJScfMA2s66BVLZovfq1IMGYcMymtr2+gLDBELowoyDBFKHSjeCr4JD+vnLSZLx+rlihdsEkouCSkstwr"
        "Ga1cscMpGq8DLDKp2qw8rwgtnyYxJzOlJSsDtC8ZVag+KuubFSWmIQ8sNCcnLOSl8yhKp+qmNawMK8YaQ6WrrG4q"
        "oSCoqagvdS/EqbsZgSykqkut8yi2Lu0tuSu0LTWcCCJlLkOuLpmYqxenIq6jqKctN5g/LJ2u5iJUnJWnx7Unp7sm"
        "fa1NrPme6yoVrEusRq3WsqMrxB1gL9QspKadqvyt/DD0Ja4sMKRurw8chrRULPspH6vtqhYzUSI7sTAwYyZQKyQs"
        "ITRrrlUoXas2teo0CC3frPyoda6aMU0gyiTOoZWzWy67HRam0CqgpCgr2ykqMCmthKkoJwapTSkwnP0YWaQJsEOz"
        "cCvfsbGpVLhirQw1/a22pfkiUygoH9Mw6SBmHwQuH6/YsOWxSrKJsumqzagKpWghiB0TIySjK65jJEQo/zEaMeis"
        "YizCIWwQ1SXLrc6q16m0I7cwjq/tsNCt/ilXLqszGba7ND6rerz5r9Utm6AIJX2vdS8AM7gwUayos8CiS69eLHIq"
        "lzS+teI0hCSzqXw0ALbNMsKtJL2QsAA0sRo+H2Mj2y82MlQzpqsEtMsshK4ALOstwDTEtLI0wLXTJU8z1Sx2LYIx"
        "y7WmrqSveKttI+oqRyzKLXwsuC5QMPUtBSDlJW0xMzKutKCsRbBOtFqxfy8GrIItM7h1rQ4afKxwMcWtla0/Mt4u"
        "AS2utp0y6jFIsFW08bSJrSguv6YpMHCx4bAFtLIvmSGUqhgyS7UgqeOtS7I4sU+xK5yjsFw0iC7+mvKtHy1CrhUq"
        "wDRrKS2szKojJTwxqjT0Mo0xGKkjsNorujNiKgc0DCywsiMwxi4fKM+zE6qqKZ0nGbJtsHy03S5JMEux/6Rkre4u"
        "Yax2LxE2tavGMua0lrSdsOi0iLWqLuMtgS9hNZKiIahULaq0sC7DNP+0DDmCs6+tHSx+M8wsRaueshs03CwOtQ2x"
        "1CmEsHqvnLe5NG2rCDMdrIoxKimGqUS2Fql+NGCpZbEIKRStjzWwremzDjlCpc0suDaPrygwIDUILVclZ7BTrbsv"
        "GDfrsDeydK5+qL4wW6dZNGasCCf8M+sqXDbSqTedMi3vKAizwbLQOOyomiYwrVgvdC4nrDCzwq2lnzkjfrKLsZ0V"
        "dS5aLHWt3jSVnAexxjBaNmYpaC3SNjEsG7C5lB4xOq41rjGrLLpwNoWuDS6Qrgwsba+iKCemoCRwoXcpRq6GMT2x"
        "ESyTJ82wd7IyKqku66nDLe+xUbcSNL+tB6NSnV0nDa7WLpsw5bWnnYSvvIoMq6Wxf7Owsuuv37BLrCgtSakAsn+v"
        "uiKTJq+kkCwBK9qjJ6uJLnEpwa65E1EuFi11Lesyqy0LMEsqmSx+EnCuWSjToKatD7aBsJ8rZyKyLCguRTAzst+o"
        "AymQqm8wQCmqLLIve6sKrTes9bXatv4qrSjSDQYtVbDVsqsjdKOCn9ud0LMRspsbQRvFqB0ecSENKJyz77Q1K7+h"
        "PSyPlQy4qaC/Mtojza1eriEpbzEIMVYloi6ktFm0FK86qHyuaSoRLQwqHrb/M42p8yM/rncuGyzYLKkm7qdLIZek"
        "KaZpKKSoDKQXJZEodqv5MH4xMyzDLVwqlCjerrKvNbUPtFwwCaxqKFEpmLwTMWStiKlvLBum6LQSsHIrARP8rb2t"
        "sbCfsZinmbCfr9chbLITspswVS0FLWKlA7DrpMCv+i1KKqysfSydq58oUqQfsJ6xB5GPs7KWTq9qo4EeeChCJGAv"
        "BCFIqSq0iyIqq12zjy5Frgkp0yzkLI4r7ypBKiKrMa7sHPoZpTCoHcOwL6U6L7UshazjKTIucrZRq6AuPbXNpdIt"
        "3DGVrximZKodqVadDpuRM+YtGbSVsRuvmy+BLZIwS7CmMdIotKt9IiMc5bCcs7gsZZ42sW4rCihFJOGfYKkuNQ4y"
        "c6x5J+OwviyaLAYsYaw5rrQjYC+DrDKpya3drl4nrKzKAYWrFCiLKMErEC0LL8olGitIH4uorS6aL76jLTB1rzQm"
        "iCx0o86fcaQ8HKUnBSUkLRcefLJGpJMrQyaUJFik6y60ID0i7CW6p7YrUKgrrc+oW7DFMjGqYSQhrlweB7oJpvSp"
        "KrVdsFYoiSFYK8mzp6FZsE2txyeWpOQkLCibKnCr3isosrywZyguqHosYC2ppmiv+LRzKmseFLwxKVAV+CjeK2oa"
        "SyApMcett7YEqKGxfLFpqIw1oK7mrS8p8y75KHSwd7VdMXwwf7AaLYYu6DVaN64uCC5FJZU0LzMkqZY0pLKPsN8v"
        "XS+TstwyFbTgsG2t5i8aKO6okiPoL5Wt4rEsMw6xnKlRNEEsliN4K+ev57A5K04yUa3pqoQxFDQbqEIrUq+XLEYz"
        "+CyVK0+0WTD3spmr37BWqY0nYKV9MPMoLDHcs7Usq7DgqBOmNrFUoia0EbF3HSWmJzHoM7upXjCPLDIzyDL8rm4y"
        "zCyer8qtviiQJaeksjJoKgCxhK3uppIz+DCUMWixsjViNEc4zqV+OC8yGTP0JMGpPKQENCazd6bvuk8Ys6v0rBQs"
        "8S36Kxgvyi43LxYy+7EUMdmrK6U/sQuvNTAyNWSwNTSXskiuoLXeqVgxRKaGKZYzw6bpnyIw6aHDJHK1YaznLm+z"
        "SCw9tQGx7y4QtbUt57C+MtWtCCYFqHg0SzOeq0oqZLL1sQwwYDRvtK2qRbA7sVkveidUr4ewlLRct8GtMS9lMLOv"
        "IzERNG2o/aygKnGvJrFLIeYv5rN7tCAwLqzgsU0vPbZSLi2nR7ALNLSu6a0JN/iqGbOXte2z1KwYsmoQ+64/NaOv"
        "6ifzsjypDS0VMycq9ar4rMYyO64tpPwUgTI7pWow1rTLsO8s9KQkLwQrWbPULUcsSzHsrHQxRTLbrk4sLLL9Mocy"
        "LzYyNXI49LmkMI02965jtDq4sidRMAU4+rDesbS2TLa3r5aov6/srAoodTJbNWKwh7FuMr8zhiU4sW01u51xMwWt"
        "m7M1tSKm67Olr+auHLO8pQszgrJXNLQvoCpIKggv3yGsNm8xoi20Lwg2NyVKMf0nyS4ysHkx4La6MicnFTG3rLyn"
        "mzKANJes4a4Vruyt46+mnoe0RLXOLLc0sTD9ragxmq+BrW8ribSctRgn/LTOsikndTC3sWy2vbIQrPwyrSxWKhkt"
        "cy2mtt0j1axXMPMxEKbxtvCpZC8ltGq1IbX1rrW0pLK6sBsl0i4RqoG1oqxArGy2LzHqsxetcbBzryU0nyqnKSgv"
        "ZCxNtMOmt6yhsDIt3qaRpgu0+THQtFAWOLKmsOUqPy23qgcsITG6sTez9yr9L3QqTDR6sOaf7ZxnrGSzf61IrS+w"
        "u68pMIKxwbFFL20tWy4cNayzWTVLMuch"
    ),
)
