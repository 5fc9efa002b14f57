"""The numbers of `ops.hopper.model`, as bench/gpu/fit_choice.py found them from
31699 timings of 2532 products on an H200.
"""

# fmt: off
PHYSICAL = {
    "clock": 1.45e+03,
    "sharpness": 4.17,
    "uneven": 0.304,
    "later": 2.61,
    "alone": 0.333,
    "one_consumer": 0.978,
    "turned": 0.662,
    "crooked": 0.512,
    "split_by_2": 0.42,
    "split_by_4": 0.012,
    "split_by_8": 0.0278,
    "along_n_2": 0.123,
    "along_n_4": 0.0425,
    "along_n_8": 0.623,
    "along_m_2": 0.207,
    "along_m_4": 0.00147,
    "along_m_8": 0.02,
    "arriving": 127,
    "edge": 0.347,
    "from_l2": 126,
    "l2": 17.7,
    "empty": 0.0549,
    "memory": 4.09,
    "promotion": 1.02,
    "latency": 0.646,
    "of_each": 0.09,
    "again": 0.273,
    "last": 2.37e-05,
    "stored": 0.0302,
    "narrow": 0.238,
    "by_warps": 0.865,
    "partial": 0.947,
    "summed": 0.0579,
    "exchanged": 0.275,
    "begin": 1.66,
    "begin_persistent": 0.001,
    "room": 0.005,
    "split": 0.206,
    "block": 0.00201,
    "cluster": 0.0598,
    "adding": 1,
    "added": 5.02,
}
MEANS = (
    0.644, 0.144, 0.0368, 0.28, 0.521, 0.054, 0.0961, -0.506, 0.375, 0.342, 0.232, 0.19, 0.113,
    0.0455, 0.807, 0.233, 0.146, 0.115, 0.199, 0.0315, 0.106, 1.24, 0.785, 0.617, 0.805, 0.123,
    1.1, 1.17, 0.975, 1.05, -0.0788, 0.839, 0.731, 0.344, 1.46, -1.43, -1.25, -2, -1.7, -2.1,
    3.74, 0.373, 0.253, 0.197, 0.197, 2.37, 2.33, 0.808, 1.87, 0.436, 0.659, 0.171, 0.184, 0.114,
    0.0522, 0.279, 0.018, -1.4, 0.0394, 0.0316, -0.051, 0.253, 0.265, 0.0209, 0.0321, 5.24, 0.968,
    5, 0.464, 1.78, 2.93, 2.86, 0.213, 0.251, 0.0598, 0.0469, 0.00782, 0.0193, 0.0664, 0.0258,
    0.0571, 0.0196, 0.337, 0.0534, 0.0788, 0.0687, 1.58, 0.421,
)
SCALES = (
    0.48, 0.352, 0.189, 0.757, 0.632, 1.53, 0.306, 1.14, 0.634, 0.66, 0.423, 0.393, 0.439, 0.209,
    0.396, 0.424, 0.355, 0.32, 0.543, 0.176, 0.362, 0.37, 1.23, 0.487, 0.271, 0.854, 0.875, 0.84,
    0.862, 0.791, 1.51, 0.369, 0.445, 0.476, 0.637, 1.05, 0.983, 0.602, 0.699, 1.11, 1, 0.485,
    0.436, 0.366, 0.438, 0.829, 1.03, 0.311, 2.46, 0.497, 0.475, 0.377, 0.389, 0.381, 0.249, 0.45,
    0.134, 0.678, 0.195, 0.176, 0.308, 0.427, 0.437, 0.144, 0.177, 0.132, 0.192, 2.35, 0.278,
    0.927, 0.478, 0.39, 0.411, 0.434, 0.238, 0.213, 0.0891, 0.138, 0.25, 0.159, 0.233, 0.14,
    0.474, 0.226, 0.27, 0.254, 7.95, 1.46,
)
EXTENTS = (88, 24, 16, 1)  # inputs and outputs of each layer
# Of each network and layer the weights of each input and the biases, as 16-bit floats.
NETWORKS = (
    (
        "azMfIlWsOKM/KgwqtKsEMTkuRqxtJr2rbTBeqXwliitFrUcstqhorDqufjGbJ4OrFS9mL5aoY7DKNAStx6+Nsnqi"
        "C6yRLS4tPyhxrWSkW6sKsaekzDGkM/SxRapgKjGo264psfksPyuNs6kkwam9sD4rB6T0rOWYbqEHo76kuKhvo04N"
        "T6zgIOO0bq5As+esQqjyLnuygrJlnjO0raPFMVQxaDJqLPQwI6dULtQpLS9MsmI0vjAiL7MtfCyyrP0qvi1sLdgu"
        "ZqDPp620CrT4rMO0pizrrP6lY7K5rFoprqXSrhMuQKqHrg2qE6cXtAowf7D/HAIi/KoRKCyoPrAMNS+tmq31orww"
        "NbC6sGCvGqzfKzcyp6r0nGqvXCeLpnclJKQ3r/Mwmx6JrNq1Eaqjr3Sy4Cqzqvaz/6DpLvMyTajGMy2sAbTYrjKv"
        "+STNK8IlRRu/Mkgkx6y0MKuv5yzeruwy36DLsGakqiU8sYmuP7B8KjgydjM2tJ60MqfXqNIwDS02rNQwl64JKEax"
        "9bAHr/evWSzap1QtKrKmpJilj6jIMfYsUawlsQwm6DASqKkr6y7jKFwu1imzqEipHrJOq/unnyIbJfYumK5AIBwr"
        "zai1qCAaVquOqJK1FKitKs2oJjDlqAwndJyeLCWp6a1LLUYv6qWxsPept6/VND8xGCw1M1krlBmorTouAC1wJHMv"
        "tDCAsG8onKdmLhMxY6eIpDyftam3JWEtq7E7tNuuYqjuLLEwfa5VtNKoazEAMyYwZLAfpnSxNStlLMSofi3msY8c"
        "uixFrPEtTSf2sHcaAi1sKOetNLGWsLswkqmfMCWnti9/LQWw/qsRMNgsQSUtrI6s2y9AKu8lHjBXpYyuACo0qxIs"
        "9jBoGcmz4ilzp5Em2SMQKMyom7AaoxcugKq8LM6r1CsqJmmtIyZlrbGqHZiqrlCjMqzLKp+m8SrLKBgoxyt9KIuk"
        "GqXiJMsmg6ZVLu+sZqWuKB6wUKCPqDCjCxzCpgQmNqybMnIS3SSIqDccqKtLsUuoiSmTLOSoeqbGm5uuRJozpHIb"
        "1ixcJqoq0C0nMNKlDLDOtY0pVC2lKQosnamoqPYivqodrQgniCprqHojRCForDQk9aRvmOWlP6MLrZ8eziG7qS2t"
        "OJifKookybN7roOyjqtdKmOxurM0LaCwQym0LRawyituJb0pji4IMnM0oC7CqLcv0SqVLlMv3qDpt9utraRCttCh"
        "MC6fskWiCx03JtqtAKILrqSm3SLnLmOc6q5eKP4z5SxPq2gqRTC1MUev17D7MJMwKS/7uI2ufrF9KsizvCw3NZEw"
        "G6mMrayZ569usXWwXKrIsLsvHq8QMp80lS9ALOAx1DLrtWAwUrYCMcMrs7E/sfGpC6kdrLm1hLO1I3uy8a88sBWs"
        "sDKTm3wyMTDHpR81x7EqKjEgBTVpsfMnLK1NMIswq7C6sRExdSxzNko4DTVmss8zHJwgrTKyu6BiKnqtXKoPMPyv"
        "oyivKo0xADDJq5UzSa4FMYkshqm+McqsPa5sLxunC6o2MtStjLKSneG1kSlisNesMLK8qM2tCLT/rggkziqnqtA4"
        "rrPcM6WwVqwAqIOvLZtCL/gv1q5vMh+vN60utNiyATDzsVyvoy+UsvGqa7GEsDAzIKxUHAMyjC/3M4auzbCjGscg"
        "/6p+K8+txyn8rlOwsSqxsJMj6igRtYctIzBfrisuhrGtLkameKFerjGu8KaPKwaunCgeMTygcKCuk3Mvdy1yqSSs"
        "N6SFMMAq3bIrrHqwICKMr1qyDqyqKUUqd7QXpiyngyiQo3ivfilZspewMi8lsHChNyx9tQOsbSwxrtgtkbEWMrap"
        "oqShqyOunSN5MN6ccRy8LFon5Rx6Lg4mgSHxolyvDywvJWOdSqz6r6WoHydDsW6p0akirlcjo7Dpq24kl6QLq8Cl"
        "RC26sIWwyiqLqcYmcSpsss4t2iusreGcKrDyMYEs4ajkqBCuUSGzrnkoGa0drPipTyswMKAvszBVrKAglKlMJrOw"
        "viuUqVuvgC2zJmopMCXyrXKlBSImpZM00ygGEtAwxDPCLrcvJiGkHRUv3q/1pYGsLKmSsB6sgqYrMJCzli0fKZQo"
        "K7LILSOlyiyqK5yusyHKoxaulaSFre4YxKy/LZ2spCR0LNUW0COwqlYlUKTmqXAtQLX0K5Mwhi3tL+Yu4apAMl+w"
        "2KjArtMm2rVLs0axgLTlsL2gJLRrLbatVSz6rmGyMiq6LKosqi9Asly0ay8kqoirY63SrOCxui3uMiYxISpbrhuu"
        "oyyutIkoSa6KNJ8xdCM9uao2/zEirbws4bIvLCau8DQbLPUt4LTVoEIwarG9LV0xBSreMAouJjA0otMsZTN1sokx"
        "jjS2K1c30zT4H50zqy/njVgwpbGuMLEwlyqXMiOnzLIrL2ol+bVetKMpjzA7JPqytSZvOQ4zCrGGn4cpCTAxLOKs"
        "hLFNNT41TKn8L6k3nzM7MHquujEAr5Ke36i5sqop37BQNC+0kTV/tryv/q1Spluxpy27tRkx2pg5LY0r0K1ds1go"
        "DLXeLNuu3LTrKFa0q7RKszO49DASNhuyz7MStKGoQy/Ksvm0qpLIrWqqKbKNt60sqqx9MWmzbiVasB4sYilCqzGk"
        "cJHSKAQv4Cs1o8wuK5yNqtivP6gCrfOquSgWKUSrgKIKrO8W2SeLJkUssapxqM4yiix+M+Wq+7CCLzgmvikOr0eu"
        "WavzK54nrSs7pRiYNLHhG7GvdLFApf+0eqV9KLqxY61wtKItdCfssJgrYKlgJb4xBisIr6QqIi8jLT8ybKz2K+gs"
        "+qERsIyupyBvMTu1sjFrLnAwqa2TI1UxLrCvL8QcfC6+rTwqHjEhrUotSCmTH1koXjAZKAUxbCRxs4spKzG3rf6z"
        "zKSGr3ivxS9CrOyrkCucNO+xi7FPMnao16lwqfWvwiwRMicjRKxuqyYlGqdILT6uYKbQp1ai7SgCKlGkVq6VK+6b"
        "EB4soYOvk64XIjalSZl3L3GrRahENWktRi98LTowZCz+oKkonDO4MikydjB5qDY24DD2shisCaRyLBUumbAiso2l"
        "BzGtLTYkDqlWMg6mmykyMiogoasTpHyqPbICq8IfV6hpMkctryxmMsujzKuSl4wncibbL1cyQTHLqnMytySSM8gx"
        "4ynjKW+zCjJrs/6qLK1Ns0ww6CkHpCmpKK3prAatqC4ZLQcsJrFkrWksDKLOKwetCK2OsIGe2q1dMNus37Ebqkcw"
        "HSaRLYet3SDyqiY0ty0TnTMavx+2K6C1zrGVp2qlJ7IVI7osvS++NBWrRiwELyMylCQaMGYsBSw0oWEpZydaLCgm"
        "NKnPMFgvHy7uI/EvSizYm00w/akqrNOQWC8hLeei5SpfKdWoGqvNlosavqq8qHYp4a7BsWinpiy6LC+slCrgKoGx"
        "xi0HJ02jcS88qIQxXyYwrUyg75jtmZuohqmGpo2kTiITnw4nZKYmqtipjCrQMoohFyEnometIK0MsYoq56mkoqUs"
        "qa1tKy0sUSvhpY0ubJq3sq2rtJ1GIRooAKVGoO4iSi1zIbqqpCp/rLSgnqjQqNCroy3qLW8qO6g6K70pdLBqMJYp"
        "iKxXpdkpqLHzJ9emDKjNJKWgRKGPtLUsLaDyL/MsmDDULuosvSo4IQk0Ha1jLeUpja24Lrsn9ak/MUqv3qluMrsw"
        "fa48M8ytO6/Ssqmny6AMMjMtVrJnLnqiljGFq+Op1CK0Kw2rlbAkMRMuKi/GrL6cA6n3sG2wc6o2sIWphyiELf0m"
        "xqH4Kkqj6jHQLR0lAi+nLOKgPrGFs7GwEqzYrVMoZS7jM1M07qYdKuWuoa2HtBuoa6cEHDowtiT8pA2rNjJrqngp"
        "UjHBqRItaSmSMcatTRyJq8avBTBSM48qxjGetMctBTVQssM4/iV1OJAuwCz3sTcygrTLNPmiyCcAKLGvujN+NHsy"
        "OzLNtCkoni2PtUwx8jQ/tGI5maw1NyAweTHRsQUyq7SiNCaqVy4OLUWwIzM9NKExpC6JtluqSrBWK+GgsytUtJgz"
        "HKh5uaQfLyyYttqzgLYSsRK0tCmTsHWz+TEStfWokS3gr4GtaS7+rdCx1rBkriw0vzKAN9cyHyc+L+C1Zy+xoyey"
        "0zBLtH0ukDQ6K7q1KaHDst6kBCWbsYywR7FuMOW3CiyOLUqxPq2gqrQsJbVcLemul6qkLpAt57CGps4rNyh1Kpgr"
        "MTPxNFW0ha7gLLMvNCmsInYydrCHs80sHTJCL8sx6DLHpF2nXDBCMLkwVTEBLSgjQbIvKd8ydi3XKzGkJbC7LQi0"
        "b7CotGopK7U6sfCzKrUptaiyhrIPGcOiHzL9LCaxIxWbML4ylbPbqVe6PaVqNS+tJC4Ks9+sP6wynDwuDDC5tt+u"
        "qbDAMAS336yYOHgyyTSKNGgnKKmKtOeb2zLbNLW0SzA6sTOvPzFeMD60VK/HNe+1U61qMOQcNBwZoX2u5KoTNNEr"
        "BDBIs5+ynjdGuJutU7Ezr5+vBrBZr+mxtSmmLCCrOKK8qr213rDXrr6w8K0CNc0wuagzJnalRS0ps7EdyrSatCI0"
        "URezM7osfxyKLX2vhC/Wsm0uFRj0LQmtH7DRsl+qEjQVrYogCrDnKEEwmCmCpuMpOC9DLsesMKDlLgGyKbBFruOu"
        "JaBhsTAo1TDorrMxRDM4L82qiKR/q+attafyrxovTqyAMpUsfTIhMUeuY7CkMRGtJqYXJEoomy41rmkwXaK6qcqv"
        "dLDcnA6f3i5JLdIsIrFdscuwXabZKgotsiwpJoyzBy5KsHyobSuOLZosbSTLKwUbc6cYMDqw4ix5rLcmH7BZqKMD"
        "iaMyL82vKS2NqaO02yFWL1koobPJp6AsICqkDQmrzq/nL2StRylbKgGonqfVn1EpDJTnJQEtpqg2q/6rWiA1ojqw"
        "tbNUKEIxwjCMsH2tb68rLW0wFiX1qOEoWy/cMASjPrUesZ2yRq9SpIm1xqwdqPGrtqRZsN6u0i2fMvykEbLknyay"
        "giviI8Iq0674KK8qPSryMdmu6a+ntBSyo6zgMeob2rSvGJaov5wtLwWs96TimmstV66gqUQzYSBUpPOooy2NKsoi"
        "4iiKqcGpXqueKnQim67+LcyUyiyrsG80qiwcsgKvEqv/Lbm1Wy78K6Iv5qqSMNqtkDHJM0MmoiXaJh0szqYJqK+t"
        "o6ReHdgxJxt2KLW0cyrUpLos26JzLUqma6hoMduuvrQ6qjy5FqS3pYcnRir+J3WuozQRLlO016YVsBKxq6qWJMKx"
        "1Kj1Mkyu56vCr7UmVK/CtF+xsqoYsQudSKe3Ma8vejMvMAApPaJssI+vdJqnMEeiDCgqKsmqP62TMDeoeTDPLe6x"
        "0qIysL2rZqFxp4GoTaLMoNeuCicgJuUoCB7XpfAjVK21qGimcKuHIoAmFqtnIsspdqR+KVuhBymhqQelOy9nLzSw"
        "XKxwMbItgC/9oycqBZ3HtAKsgKSVsukmei2OLo0qUypSpuKnyi6uqCSzH6twLSssPa6brLeqnqztrPspQpevpXUo"
        "XzCjKoOwOKzmLiswT6sqLC2un6i5LVejbyd5Kv4peClxM8YiSClLphoooy7WDX8cRyrQLqqsRq2MmQysfSiTLM6u"
        "dC3NJFGwiytytOm1XimnKGezp7C7taspoKvCqZEw6SnxMH63rSURHfU4vDMcsQIkjjHbMuMo9az5Ly4r1i07tk8o"
        "3i+HJhg09zGoMOm0jjDRtN2wlC+nsEW03LNbIdStER2QJoOyPa6erUgqN7Epp3kxeLEpsT0Y6rO5sC4pbC0GsRWy"
        "K6uBtMC1Iaz/sEyvWSd9KUuosq7IMGEoOK1ssge0r614L7Uy8q8+Jny2xDA9M4oq1yuDLr42fTXPsPo2YqjiMYE2"
        "QbZTN7cjYi76La0rorDdrWmuljGusFWxjS2xssEmbiXmoPetVra+uGctqLMkLj+0nKXgML4zQLT2KoGnSKmcrzYD"
        "Wi1gMXuvQaObsqunpiyzMvclMy+gLUUwty2PMTS3yqnSpeS1iTJyKacbCbEyrGYvLKz4MWilEaxSLGywGjPdsUWt"
        "QLJZo5SmfTL1L3OugiuJs0Ih+jI9N7kxhqumpWqyJzQfLHez1bKtM++1AzNNrUa1pTNqNRKspi+ZsRGz7rL5LScw"
        "VjD8Lm6wkrM9sZuuJrAkKgGtP7EHsIApvLSiNE00p6o4MTExbSMwM9SxMDQypByy7DLuHXEoc6/0sowtdzENrReu"
        "hK02sFYw67EBKp8x67FXMAyw1q/OoV2kbam0KBmngrAfMZ00dCk2MRupxihLNCkzqy+VMF60BTOrKjsvYC5ENUsr"
        "ATEDqByd4ayMokktzyZhpLwz4x5isFWzeawcrNAx7S2hKBsvF7Phpq0neK0pr/GcsSUKNCG0FrFsLu8yirNHMoYm"
        "eawkM3W1Q6yILewxujhnNpStUy6rNK8v9TOKMsWpEzBZLAY3ZDRUrKkx9Sxxqm0fHqtZMFey9yyDtuu4O7B5rdyv"
        "DjA2uNsuMzHXqZYZViGUtcuwVTBWszKXLKuZsbMyyDBGK+s2KDTZKtGwd7N3LcozcilMMNWwhLCOLLYnp7XVr/oq"
        "v6eHMO+0WbTFtZavUzJGtcqxIDHpqIQu4al2sqgx9LdXKW8rTSigsPym762BtISx97GBrsGVkbCzK7YmzaKcskwo"
        "iyudqFM4GjVaNIkvpTI+JPe1mamWLI+s6qxPK1evF60ZL9axezGjsWatMyaaq8WrTqXtJ4Mviat2MNivsbGirpys"
        "iDFUMdwyzzGXMKwyhbT8sQiwGzN4q9op"
    ),
    (
        "qigoGEilxKEKqb2mya2uMUKhip19rZcuLymWFoomIqvhLrowkyYPIZmhJLCRHYWsrqVcL/ElqaFwFl4rGZUxqjQq"
        "Bi5Hr4cbHy1nJryx26seIWYi+yHpsvYsaxuiKF6wEbMytE4ySqU1rJ+sNZ0lKZoq5yFeLZsl7ZnYLMYqxjQ4L7cw"
        "ZLIjrbuo86hKqXO1CSs6sHUsZ7JiMGIqvS0dMCk0EqyDrYErOqYpr5+x9jLcMC2x46z5LkcvMqPNscoqVbCHrl8w"
        "yi06rzAtYx2QL96gH6gpMGSv+q8bsE60RbBcNMKxNC9VsvGtSzANKgWxVSgdJ8WwY7D9NDKugyo1sUurC674sKGs"
        "8i1/sIu1yzCArnUiLTQaL12wJDQjphCeEq4DtJkwdihUKciq5iw+LIUpCiiOLpQvGqd2Kms1SbJ6nxowVihpsFsh"
        "5ytfLYUtIamYqYms7bD4sfgumy3uspAsYa8zoB2uda6ErCqxOrKXpp+p7SW9sQUwOClQKlql0anYpDmkIixrpzQn"
        "0jDDMU6lfSf6qISnrqw1rscpQ6qUKnwwWC2QLFAnnDAoLnetDatYKe8uraqZsGGtILJYKjyqwCw2HAqxjCmzpiiu"
        "MaxqpJwbcK1YphMpiyVtL8WvlCr7MBQyayjjL5AuozDmMIKwDyb0LJ4wAqzMqXgzKxiIMkOsTC8WqTyjnyxLMGYz"
        "Zis+Kp+dfrDUq1Qxaa0iHUEnEC4kKJyoryVkLE2gPy0aqcArCqvOMn8ucyO/HX2YzquTLyoazrRRNXIwhSjgr3Ei"
        "e66RGD2qF6inLqKnDSkvqAgaOSy0svKqp6tSJDe0Cau/MReqZywZsnKbfqyXrHQwEq3HH5OuTyzEoOKnF6sep/Qi"
        "c6ZoovAo6aSuqHakGS7frSughCbELGQkqa9CqS2o56A+qMUkDS1+pDQoAbDQrAGsFyvNqlQptynlsIgoASpZrz2p"
        "yaq7MIAXCrBOJx+pAShwrBwtQqyuo/skZ63bqUSu8SgXrggt/iE/sPcvCrLpsDwxNaugoh+kG7PtJnuj9xvsqhUq"
        "OC+0nxMXMyIzqGCcPq9tLjEkpCYIrAAtaiYfqc4sOimFrhMk1yaMrBYl5atALNIhVzC8KCojn6Ooo+4i1ahJLCKs"
        "1yvfpauoyqRDMjItKa3bLoItDymNsfQhlSl2q5imp7R1MpguUKnjsosy1DK9sOwwei1kqg2y6CmhMkUhIaxWox2o"
        "ojAFHge0eyslI0st+qI8qVEswiYUMP8vDi9krU8wZqtuJIWvDKwgKCipBCVDKSKnY6w5L7SY1LAuMB0uujCNqvmu"
        "xanAMwIxuKdPoVGqfp7Ps/8wk7VIL3EsMzUhqBCwmClzK0gtGjUAMxqsfDS7pqGyJyYhNX4wVbVMr7m1da9ULKuy"
        "jjSdNXw01q7StI6iPBmeMSMiqKyrpjuxCbE4tWeuNiwfK4eqDzWnJtwsjSXFNBIz4io0rbasPKvrLM8twJ/ts6yn"
        "dS6GIJArxLQgpB0u7inIsuSyPqszMZ4k9q8BJK0tIijwrcIsrbA1MF8dgKyMrKkp4iksKZ+jpTNxqe23vSo+o66o"
        "HKyltRor9qsQsiqx0TA2qLMrCK84M/qpyZqBHBQpvCrjr+C0YC7crGUuxbHhK/Svoyors7OpH6txM6MvXDDco7Au"
        "DChQMgKtrqr3KbwsXSRWGVqt+S/4HGOUbadCMMKySDCisb+bFihLJnUgLSIzMfMmQ63RqVGl361uJ6suyhZPqlqf"
        "wyibqJ+gd7A9oWKsmK5IoK2dSixiJg8tkSukJ8UtqiozMcipMyruoSCa/iUqpLSlUjBSKg6uWijtLsqwwKa7stIn"
        "MzBeLQyoGCm7MXwrCCpKsJaqFK/lIlaoViqvHJSw5qXTnbalva+3qs+aP64aqmqhjCe1KxqoZS6KsbKmASD1MeSo"
        "UqTvrJgqZqtKJsiiM6MsGjGtMDDTKbQdwS1fLF2pmC1SHUwqMa6hqwax7KzUMRCtIq7MrBqs+a3OrvGwUDH+rR6s"
        "O6kir8ikJKySrTovHy5zMFMjLy0+qCEqRC2qs9ipA61ZreGVFit+LD8w8CE/LFgvgSv5HQEwkKzJLzkoBDDdsTuq"
        "JadWLD8waCcwLwUXQacNrHKoZKszL/+pGTJ+LaCqf66NrhmiDqiDlq4sOyzmKRsnDSZzLVWtu7CJMy6w1jA/pwIt"
        "iq+dp9q0djgZtTu0rDGGLBkpVqnBMpCyya0RrQQxgrNjMaqhc6sTLtcntau3JTkuViz9NCC1gS8RnwAxGrQCqZww"
        "taaqsSEw2DMwNauzly5YNgKmIjRQsrayriesLmMo0jI7NLw00LXRqRithTR5MZqukCvfswMpB6enOFWzJ7OUqnwz"
        "uy1is/QrWLRUNLSwKTCENSI0GLWNNE8zHTICL10s3Co3p5svYTHYNXGvlSYgNxY4/bIOok0XnaUBM2A40jRBrS8v"
        "a7MzLRU1Ly/4rzsyL6WZNKcp3rTaM9MooaxZsMs0Ta69OOmuorUTMJItATQFMAazA6fzOAs1NLR9NDWvsqqEtn8l"
        "Riy/MuqpKDFzsnCr8bQlO0iukiZ/rSauMrA0J5mznjhvMXGwZrLgszikcq3yrVmxHq0ntCaswij2rrWrdaThob2s"
        "DyNULPQpD6yIpOeqcSi1rXGmrC1jKDiiGqNFKUgtfSnALEGmEqJpsKKsPrJNLXsl76LiMKSmVCm+pJ6rhagZKSwp"
        "lKgPqGqq1y5eMrmxlailLeqnNrLZMl8zVzD1sqgxrylTsMMw+ayHJvOpDh79MoKpxzIpMh4t77MhsH4woajXs2ks"
        "QqwPNIYt7qb9qcsvDSwbp8qbSDB1I18uvq0urXYw4SwIpVojaSp8qn+vY6uzrDEmfTFkNCGtRSJJqHqvEqJ3Ni+z"
        "17N2LcGwey8zLzkzFqR2rV2x+yRmKtQoKSk7KhWnxqpdLk6vzqp2J/yuk6xmnk0qXa3FqYKvFawLLS+ssZyKqW6w"
        "2ClIqCeqsy0+LoUpd6vXMaMwJ6pXMHoxk6i/rvykszAzKZUsJ7D6qlyuxK5eKXCt4SFtItAptZ4JMkktqSfZKzYt"
        "X5lRrxyu5i11sxIwXijTLeQvYq11ogYu7y3MrIGtSSi6Lv6rmKRnshifeLKesrqtfK/3KTMvc6w5sbAYyypTL9cU"
        "PTBasPco+yl/nu0qv6xELUKrNqj4J54wOqd0qlEiXS9eHbOu+Sx+LxktrCsEqiepm60fIwSq9C/3KLujQy3MLAgj"
        "o7FKKQ8r1B/2LKGogh7dr+Kg8ivTKP8oLihWrEIxiCARLZU0Aig8K6Km0aBvMhAqty/iK0U0mCmUrMQnY64oHP8h"
        "T5w/JXMsWKkMK+uhqTBRrwOh0qYRpt0MjKrzLVwq1Z+/LvAu/xcZMS6r4a0krA0qBqa1KIKvjqZapEEtCSliriIp"
        "X7IMLAWwrC6hIxuyxCwpsDKun6j1sKOoV6RBKMenqyZLKTUh2Smdpu6oYSm7LZur/argnqatgqwfoColSyrQK7mj"
        "pTF6L/wkIidqsAguHS4zIhIsrqQ/Lymp3qcUpnasri0oLTYo+yYDHKUhaB3dL0ymjapSl0geT653rWeoFqyuoXOs"
        "SRgwrsQpmyMnsWgobK6Mq14iGSHeL2WmJSOtHiigy6x3Nc6ftaKsK7StSrAdomq1vykqquilYLSuL3oy9pyJrfEY"
        "ZzORMUEywphsrM6lSa7ktAsp2DBuKwytoqyEKlQsH6viMTuway/oLR4sjislLSAwvKnqqdUutbGoLRkmTjMGItOg"
        "LKVHLocrVCj7Jj6ls6uEJ5AqLyJppzws3C6EH52t7jGQK6GtfSfjMuwkzbE+svcekzE8KyavJS3VKvQvlqtzLo+k"
        "9izRKBcxfCjhKsemjCWKrnOwjJ9aLSSwyi9UNQ4q/y3Lugus8S/pJWWgbhZbME0wbLYNtLG0cTNfrss04qfqMrap"
        "nTGuLrYz7C67MxQrjS2nuharjyWZLzOsH6ZzL2kvyLWNtISzEzR2KtY0763YM5utwDB7LuIy4TFhMPGwvKEdtbqt"
        "sKbVrjErBquenugz5CwSNMoa3zKaMHwbj6xFtholui6zMesZV7ipMcixgrSYuVo1yLBkuKO2Nq1omyurzq9gKR+4"
        "qShYrU0gH6UiJGKwgCunKjWv1BiosZeecrJaoo+l4Z9cMcos9q0kozQlp6x2rVSpGrBUMNup3TJRsiKwlyxntLcm"
        "AyhLMNoyqqo7rXcvMqk2Lz6xZq7yHyEyOqylrnI0CLR7oVsw9a2FMImuSbK5qz4tryxpHjewQaYwMuW0HjSNJAYs"
        "ObFHLuK0uTZOtxG15yr/qd8pDiZOKgqx2y4/LhoRUTD3s3sw0DaBMjs2Hq6QsKO506TqsJaxCzSVKe8p9LU9swm1"
        "zqnis50xPDW6sAsUzyXyNGO0irLNr6qzgazNMzuxkbJnqBO1Hy28MH02y63hsmmx6SwUob0kqzFHMUcx1Sk4tmOk"
        "pawOqVgx7avbrx2stLXPMTi0hTElNxa4eihspd+nZ63jtAuxra0HLzy1DrROtdiuN5+pq2KwdjSuMhWuQS3SKMO0"
        "mS9YNcMoKDTUNe2robDlKqe1CqU5Kg+lDbBoLkWhQqUnL0EvNSjdsU2oTqkwMFKuNa1KMJeptavHGyivPLBrIy6l"
        "hC8CrVOq2StXLngoYyBFMJcxpS0jqKOu6CS6M8stR7NdrHOuQy7eMLKcPq+XLhMwuqvVsNQqfa/grlGm3ChirzQu"
        "PzCzJo6xpiTppfax7S8XJPytorBgLiQwg65uMO0kbi0MMrm2+qz3LVCtKK2PogSun7NBJMCuvCzJIu6uPjA0rVmY"
        "ua4KsXqnpZxlLDUqQiynLR2ypShZmy8hfhwoHaqvCKreqi+rjpVfqUWoSizcp6qu9qiBHccrqB9KsRwke6YALvCx"
        "paomqRQsG7GZLp24GbAMsEGp8Zz1LD0bQzAWsYqpvbC2s60qW7YTtrSqEJ8OpZifd7CptM8omq0eJ7wrDS9QqLin"
        "1q4UKSYwjLEypYOmnazPLBmqWSI7rWCtZ5taLg+t9KjCq9EucqlmpUowzzG8rYSqwaRzKzKiT6SZJOao1rO8pnYp"
        "QSMYK6mpPSqcKOqvMjGMo0MsojELLzeuVCJHMFKsl67wr8Ox8qbhLs6soC7dqJikjqkXMWguMrCVMIq4SbCXLQax"
        "zJ3zKTsvEyvJtcwq36YpMCwtoK7nIuoe2CmQJz2dFyUmrAgwfqzfKQctnicXNZepObL8sasuRbDgLPMZVagPMNGx"
        "QiXVqJy407DBKyccCShIsDip0q+hLZGvOrNoMgYkeq3Lr1KGljL4Maur1SyEnG0oOyCxqj+v7rAiMH0pICVPsm+l"
        "ZhGBMEGrkK0PplMmgiMyLEuonCy0K/smwiJrK2upsqj/LLigfyyWLAKjsyTLrp4oKqGdpF8kP6tGJfimUalRKH2k"
        "KCupplespCZhrZojUqmYuHIqIpB1pRgqySR9ri4dBaG9EzuuE6/HqxotYSZ6L06llyiyK7+0U677LpKoqi3+K2qy"
        "YJyXMLKnObI6sIevDRmjtcSsvqRYJNmoWSPbJlmwGyZUqGGtOqaXHviqISpcIlQng5vTroCiURw/r9wsaSmwK2kn"
        "NC3XK6glXqkItF2s5jFAIegrzS3bMaSqMjQ1suM0/698oBkgC62iqJUlEi4Msp8thSa6KmUxQyx5szgxhyw1LNgp"
        "fK2RoaafTCpVqvwurjWlsFsox7d2MEAxLySWrNowNDMkHv0t5qyascC6UiV+L8gwGq42F5kvCi0bMaKhujOXuH8y"
        "GDD2M70zHSwPsOqxgawwsbC1HCjeM3Mur6Eqq/S0pSo6s+stpSuMMV6unyjkpwiouDFmMSQxjKaEMcy4PDTiMRey"
        "Ri9LM7e0DrHtJ0QwXDBZMPgw95ywKowuXbJ7shwdULE8tP0zha1ytDmo2Q93KNYshik3tZqoKK4UsFG0w7Y1sLyt"
        "BrEGtF8jODQStGQybrKAs2yx1bSNnSw0yDKKrI4t8y75s+yuo6gpsbIS+7C1tBsxbisBOAg087VHNTUpnKs2nE42"
        "rau1MmuwiDHxs1IybTIIMAo4Wy+OqKctEzJjKZcw6TW5qkU0vawJrr4vjLQ0sUSsYa61tII0gDaNLhQz1zTkposq"
        "zylzqm40CCBIuMo03CwXrGkyoS5OMFqpx62+rVixjbGpJmejHaaktPwtPLSItg21oSr8s2u4ULQrrlGvybB0r8Wx"
        "+7SHIXuyqzS3pXiy3zBQLgSxP6xOtC0zXTTZLwymCCnvq4AtEC89NWMo0TNBsWgrai5erisvXTO2MPKw5DD7LoQr"
        "ArDmJEEfoyZQCW6yGbGiMocuEayBrHEtxLLwu1SyVKr7KkAi5q7AM5EkdyrKI1KwRiFVNHy12LbmtOA0xS4LtQon"
        "ezLhuJ6wZ6x4qUKufjFauFi0WaiDqK00SzfEMTgxiTCooaIyYjCeMMU2q6BIsHgxwywvq8yvVK7UrKy3FLUDLmUx"
        "v7bOKY0uz7JIqwo0mChRrz2XQDAbs4u4CTE/sjk1oq/DMpYzLTOOqcktaa4cNZMzjid3ssasJK2XrZCuBDTVOD+2"
        "nivLLb81GJy7IBW0OS/hspGvr6TVspKztbITNv6aFKE2NAAwHquWsRq3dS22LvqsGKZNLqO4ui2zMtiyNy3drE2x"
        "Ji07tEy1zqyTtheUFCLmqpanz7CcMMcss7DJlGmt4KssqXOyRKqGsDm0Rq9iLRas+a0CLFsstaxzL0isu7HULoMv"
        "UDJrMe+te7DbMbGycKwPMSYuZq43tCWk"
    ),
    (
        "DCystZCvbqsBrC0u8S6CG+oe+DK5LlEsmKzBF+esnCSOKWSzRSImr6awUylyMpWtgLG1r8ouvjB6MQ+v2K5NoZ0w"
        "/y7NLCiwuCQtLA6morI0M9qugakyrmUqm7AlsR+xFqClrn8wKakcMAyuBbHLMHwsiKjUKLEgCKjgqCWywLWSoayn"
        "nKwirYCqoTGXrBulPijzrqUvp68ssEi1BjPEKKcnuqxur4kq6jGMrcco+50/MvCl6LCDspEsriwknGGyOalGNHwt"
        "Z7PwMy60lqc/NP4rX6OoLH4w7bNnsdgwurBpszOgaqRCrru0ubU7KZAtF6yEMuwq2qvMtOCvUrBOr1StVaNiKlyp"
        "QjMbsG0fDChCK02vxrEfK/k2yTB9oomwazEHtN6lujTCNI4ybySZKOwqb7mYL420fTA7McwuR7FMrHk0ZSlYMAkz"
        "6SxCKNqvJCi1I0UwaDWGJd2jBqXxlnUsziYWsB+woah6rWWlBy+CNWKtXTEXrVgv5aC3rPCY6azGK/qsAakKLACq"
        "AKn8JgepIKhKKVesRLCSrOsp+KiWLpeupSazMMmwOLQwpr6xvKo9rQSwqiwFtKevErA0qbsqorCAMY8tjKlfHjCw"
        "LaoQMcitgZ+AHEmxSSt6qiCtC66+MLyqJbAALfulQzJYLVSwRKRnKRKoMKwDmnEjHzDeLTevODIFNGyqUSjvl3Es"
        "VC8wpDwoIDEetC4uja0+IoswCbKCHbMu5alwpPWtxibhsF6wly0JLDuZPKzQKwuybp+5sA8vsCuKJNQeVSg/pcCx"
        "QLcVMI+lZK1iJ+2wDCaHpwAdRKnlrRayKaQyrSqgDykOsMIoyKAqpr2tGibopS0xBTTvqWIofitZKe8tPBzbmZ0s"
        "954QnRWuVzKZpv4WVSZoroYolijtJNMriSlQqBknmDE5LzIp2S1xLCkv8qrNrQesHKpHrZ2jDhaVrd4lfSXGrguv"
        "xR+nKRytfS5NKRaoXytQIiUoPy97LIQru6wzr4SuZLDgpAWvzKzRp4gsIzMNp24IWDDFJpCpRw3dpiIsrSukruMu"
        "Rag7HFyb76gKpbytZS4DKeeuQzEQqCOs7qhHpksmRqEhsOkuw6OXKvsseKmFJn0p/aPrIvSdvwl/rp8rN6EQKRAt"
        "ux1mqDkhWpnZsnwtr7PoLAspES9fLYKyramZLWCq7igMLTwts6JvLnmiDC2TL/s2gC1Vs2yrXCoktJsp/C64shcy"
        "opZQq+qu46oPpVsp7aQpHOsoviseFXitqS3ZqJYe56qKKqgoaidKtLyggi2Orpan6y1KoFYdERq4rYWk9684L16x"
        "drCfKEqpVR0CLHAkQbSOMCIuBrAeoeu0eK/lrSs2jyMusPoyy7NBrBQsmbJzrEEuozBOs+KsKyt4LBu2PKsvs8Im"
        "wCnRMckw6AzmLUW0XLSkN7QkNiK1NAEt1a1utNko+DRMt+kt2ahDJxispjK0NE0uyjEMtO+smjD1NAgzADGtMj2u"
        "nbCkqLganSH2JH6l2yoxMZkx5TB/MEsvpiQEKmomOLERLFyo9LMmNcywbDG/p96pCrTasz6y0zCqtPAtcJ08Oeqx"
        "JDHwprw0+h2QMGYs6K5HKcWghC4AJVWwyZUNNPCiaqp1MgS0xy90s/+vNa1FOCUmuCv9sI8ta6j9IuQvQqlps7ek"
        "WBPrrTsuHaziJXktRK8wqIkkezTVsDsWayzgrbwcbS0HseStvLCDsXws/KxfKNWsRqw9Mpqyj6lTqQ6qe60zIgit"
        "e5guL+InAq6LptwaWzCRKiQk+67Dry2orqrRs/cgcCpppwYtJyZxKYctjyOIKhipTTShqueuFaQYr8CdtC7hrfit"
        "Eat0srEakq0oMGcrILDeL7ywciTQqPkrSzAzKgciXKptLQGqRqmtFHKrRi3gqx8tL6wXrxEso6pxsaIoiDFzsRgt"
        "lyVWJ54ZQaokqriaey5LrwCqWicyLEskKqgKpIWuiCZgKoAqERlRLb8l1azqL7ui46qlqP4wSSq1p16sbacjIpYr"
        "bqyqL+QpMaftKAwzW6XpGaOmXahVrd+j4pwDtEAxra4JJoA0YKTuH5QsqSprJdEwxCtwsZ+uzaUCLXc1zJ9wpjiU"
        "i6m/pI0qWS4XKiCsJJoXqfCoRq9LrZWnKiqupv6pPap0rNAuaqxuLhGxa6qdsdgrw7JFsRyjvLKepXG0mbCYLUws"
        "tq96MAusADaxtU6vuy9GtQ2m4q7jLca1ODAYroyxUKaPsTmy0Kjvs2GmGrNmMN40AbA5pM8p27ASNXul4CUmNUWw"
        "XjTxqxEwfDDgNI0u+y9oNPeqWKpOtVunsbFZNrur/aarqNQ0dhGNNB2vXTS1tZuxeDBEsC0gwxw6sFytrDTJstOx"
        "vq3eLS44XqwAM/AwRbEUtFg0oy+zMwguNad0sgyy2TIIsSS10DC3K1wz26Udtgoye5kfMPA0fDdgrBSmER8erPet"
        "pTMBr+S1VjK6nia0+TZGL6qlqautNfOspatysKSuBzXoLDI0FjSNMhYwFbIIsW+0VDS8MuSvo7RPOnivPzjMtI+y"
        "ei4lKZ41ObVotUEkQyEZrpyw8qw4tgQkCrLLOMqzVTbxIKGxRLRsOSyePLE6sUurFDCQpEwuDSvdMLShASEFqmaw"
        "QrCNJFmvUiA7KiosYKJQpWCq4CxII+IoLCNhqdWxpCahpyWuGrLuLDMqnii3MAWyia66r0mhVRTvqtgoQCtFNFGm"
        "ACdILfGshJx3sTmlhqzRKfgtGCzYrK+e3bAhtXU00CXLMKObEbPaLemk5anysBO05hcQHFcuSTBzo0ywg627sDaw"
        "oy8Os5UoSSxxLRSqFjQuqw6xRClsqpQpHClurHSqXjE4MFgwEC7CLBcpq6GXLLMpoqh1LLat2y50o9Yr3bBvp6Ch"
        "kCq7pBqpjihnOXAQHjE2LNykIbFsG52oRKjbK9U0ZaxTNWkuRSVYIE+qwqx5r9YuQyjgqswstqpLLW6ovSr5LlKw"
        "qitBqAAxuaqjJyAkIS6ntCUkI65mNKMpDTJ0M/+r8i0KJEStOaHjJ3gbQbAwMVQlWDFCLQ85Lh65HUAtYZkzsjKr"
        "8LFbrlIvBSkIrM6t8bM3MMknMC9BLgWjYjDOrKgw9K9bmNAY4Kvvr0wlbjCoL+qhxKt1rnynmal7tWOpOLHOMcAx"
        "ayvqqVoreLOYrHmvRS9HK6wpjTNZrowwDiYyosyuly1ZImwo1qcaohOu1q5zrSYkJaytJMuvBJeEKKqwqaXTJsCx"
        "ljBjrECw1aQ+MlCv3rIcrOIloK09JayyH6TFL0mpTScSLgQtwqggNE6qYCVILFIs6a/lquKwvCgbtX2pdCxWte4p"
        "pii3qnmdVTGLLs0x8S9HqMEr7ipepGixJSjXLoirtaPnpVEXGiBdqhelmi1zpEmsC7JurJSwfyrZLaOkmij5pVIq"
        "0CwYm1gv86v+rOIzzrJhH0uvvJlFIuIlrqpcq4Gggyt6K20xs6dfkD2loiczKVMqU6ZPKI2wJiDHLPmwbiuUKNIl"
        "xiSLrL2km6QSqHgrNSrjrmEp3qVCqbQpwqcUKV2uSCAfLDkvGy/kpl2w26t1qLUpMi94JH2mGissMqmp86lWjjuv"
        "zi9DnTsk4qWpqZqp0R+/LuOp2BrHq+GtKiprJOOtI6jJLtSt8TFApcKym6UoISe3U7ResQipjiBNMQct4bSBrJcu"
        "sCyfJkG1Z6RELiexGjIcrOiudLJfJbkv9ypVMsk2mqgyLIMvQK1cLbCqcS48tOGyjSxaL3Ih3DJrJzEvri8dspar"
        "0quRqHUsQzDBrf40ZDJVLVwmbCpbmDAwojENqmezPyp+Ks8rbS2kLYkwyy9QLzwxGyzJsN6ynihcMTwvUKG1qDOs"
        "aZ8dIGOqcDEysR4xZixyM0AlYS5wKyQsZCyjK6OvoLYbsJYjjrAmMbqtRjg/M0o0b507Mcwx+TVUvAcwI7TzNK6n"
        "LTEnKruxbDGOLtCw5rXhsPAg0a0gL/8lpTdcsNQzAq5vMTQ0zDUzvPMu0bQmMyEvnC7jMtyyjCw6taCut68wt0sh"
        "DzDcs4UkNDNztMc037AirJgy06TxpoKxzS7WLCouwqULquQoGKyvt2GsUyxBMga5UrBnMak0TjDypQcyxCzPLQCh"
        "fauMtL4yxKoPtXowr7j7rISp67BNNkc2Fy7ZsPYsNy9tL7qwH7UBLdGxMi09rMG0x6XBpJ+tTbEDMVy3hLH6L+uu"
        "NSl6sBSxpScVNOUwsjQoKo2ucjRfMMev7bE8JSewd6pYMCehiiSSJCSxH6y5NKUvp7QptYKwArJcsY21ELcNMOU1"
        "XbDZMmMtdCUbtC2xYiA3r9eqEa4UKDiD7jBqpOexvLDmtGo0HrM8tFW2qjEAMFE2mLEKqbuxTCGwsXsyN7OkM1a0"
        "KrCoriA2raf1tFqqfaycN10pWDAusqayJ7XoskQoNjSIiH6nbjATPGKS+C4ZLx2Wv7TjLO8xN6ZUL/EyOLBEKiye"
        "wLJ7sm83Ki3BrvspoLGHtGitlbSjNM8qDSgwMXWt+bFXL28u5TGRrUgvUbdErUW1QbGXs8cuhy+OsO0yU7DTseww"
        "C7LdNqqyRS/DMwsz37G4Lp4mCy4CssInTKwcKWOj2iwbLzYqPa51I4Kt3ivBswmx7zJvKDErH6wzMIktqK7zqR60"
        "HKivrKElgyXaIpuhUq8DqLufjzEFMNUqJbIAqKYiEarfrXwxYzC0sOgtNa4rLb+23y0xLFYpJKhoqLaoRSxHrAST"
        "ZrP9MG8wSjE3JmigNawbraMwqyooMVWwBK6jLlC1B7gLrXCxJyU1KG+tX7EAk84kT7GcMkkw6K7RLuktGi3sHQko"
        "TSzqKn+uNCxXME8sMKwrKvOqV6X8Ku8r1Cznp7UtHKgApXcr+LCvpBatcSbrJLYscCVPKsSpWpTKnFQlz7J/lJap"
        "JKmJrlGjn7AgLpy0nLLNKKcsZLLrMsukFCodsV6qebPZMZQsoiv/qzOyKizLqgIsYin5tZqcGiz+MLwwDK5iKWwm"
        "9K3qK20Ysis8LcasDrA7qoCumighFIex9TKKsOOsNp2lqf4iHy1JKaQwLaiOJGmnoahBqEKwey1+Komh6SKoFP4e"
        "LS2RJoKw0qbCsI0VEKI+t4qrXSXzqPIuda66MCwv+S0lJGsxEqJVK9iU4qaYsIGubKx8Jrutz7FKqcUq6y31p6ql"
        "q6R/KHksvKmnqfAtI7lEpLcpES2sIM8qW6S8rWWoK6N2D5mx4KjtoJ4oHbCAsgosCbVqLhCw4zA/Lg0xEyI8KA4o"
        "4rDSr+azgiw0rWos57K0qP2sgbIxMsQu/ClOr5qv6qnmLlWyWK6oLq0ptKLosH6qo6yzqaOvmi0kKs+wpqYyJC2O"
        "1CybJokjN6bfrHmojiRuHaEu+SQTMGADVbJWptQoHSsxLHCpxCEkLmshS5fgKd6ouCz9nBemNCVep44cdS/eLKun"
        "sylOplkkey0isa0qOyo1syOqZSpGoLGsFozaoDitubEdq20tAK1BLKmtxyvzL1atQzDYLLeUua0mKMKtdqUHvMiq"
        "t68drXErYLHNlkwmrrDJLnC3Hi0UuTuhmKGgJiSvZxzZFrApVKY/Kp4tZDFyKx8vaai7KfAvlacVLRUpVi/3KOMt"
        "NLVZLj2wlLTYMbQxfjHYMbIzkC+9sgax5jO0rwkmWSwpsEUsXzC2JoivTR0eLgGuO617reEq9LQDL0UyVqqhtfem"
        "nJn2tAusr6y4pKaoq61nKFcss7IhKLWwCrU7sOKwd7QYsFEsDClFriawx6yUs1Sy17NbL8Oxe7OVMBK4NrHOqR8w"
        "XrNAr7MwSzSirTIwmzFtp8wi3jK5tVy3Ty6KrxAw2rNtLwy15DMXJ5SxW6InJzMwHTBFsCetE7I/MLuuHjKnNOQz"
        "NDOjsM+epLKrMY4rSCx2ItEy7anAMPcrgiUjrjaonjARsusqMC+pMlgYFCefotGk+7QBM2ExKKXkpG2t6yxHrBsp"
        "miyPMZCyODSsKVkrfCkKJv4jczBCsWSyDTCvLKmv7i9vtXg0ai/kMMgu9iZfKwStqbGWq6UysbPRrkwtErdPNDww"
        "PrVSsSa0Uya/r060ISDQMqClQzEWKyq1UilRq3gzojNHMOWwX7aEIFQyDDGXqBaxVrfIr0Mpo7bjMN+w9bR7NVit"
        "3RezshmppSxAJEUtgaJ6spa0PbBbNJEwnyRVMBiuBrDfKOK4vCkoLQm0JjEOMDmrc6j5t2W26i8OMJatE7RxM9Wo"
        "xTSlqVOzuq8HtNWklrROr2wx3zHxqe0zzTIdrXgw0rS+uikvQDDPowEsbyddrQ8lFSkBtnEwoa/ruNol8yzVoq40"
        "KJ7FpwygjarWMWK32rK9MDmolzKVLDOoAq0WsPcilbcxrgAoMq4Opggqe7YLLz2oVSMjJWuo1SqcLHmuSyxasz8w"
        "wSdvLWkx9Su5MJgvYjF8J/8oETLyrd4ohqmpLku0bLKttQ0oR7RgtJw41DFGMgsu8jbOMsixWjYNJd4mKDhVMLsy"
        "BDLroBg047LymIAssLCprMczA6/3JX0swa5Wtt6pm7NwthGxf603q/SyQZ5OKHStraeAMRMwEC74nZcsTqzmss6w"
        "WS0ZNICskK8erhorFTLBMKOsRi/StxUulCjkLj4u2DAROC8uayjIqZM0/zeeLyg1+xdLrqUsdpzcKyqvRbXAHaUp"
        "yqUQtTOksC2ZMq6waTHurlE02rE2K/uuFK5UpTkWTK9oLRCnaiXhtPeztaOxKaUwlbDTLsCzmR5KqNmsW60ctK2s"
        "wzP4LPWwhrFdLkqwkLCVsiEwea7HNMst"
    ),
    (
        "ZCYmrkGv1KmTjecnUDG0q04vj69BsIOspS6nKYalUKA/LDUqV6k8sAwvZjDNLOsgmKI8sNMq3aILE0AhviccLde0"
        "gywYJHkkEaqGq4+yE6GVHXMvLbWgtGMxkq3CM1k0DaIjrukoAqfFpg+rLDJ1rCMcjzHhsCmngLNjqc+uORp3J/2p"
        "FzBAMKOqCKU8KVmzR6h5q3shoSo3swIvQTW2rhctUSnBM/kx1zFksmIzwbHMsOw1ZDVMr9IuZzG4svYQ+a2htokp"
        "D7SisBGw07jKMdGtwijYrcSwEyqFtP0rJ6zKsKKec7Jqrkgw0Z8NMI2t9px8q4qwQS71p+WvurBZLmAqA7R4LEWk"
        "pi6cqhuxV67VsCMynrHtpYmySaT2q/cu864NtAwvNy7fJ96XGTA0qvIu1imyMR4vPzGeL+4tQaoZI/2suzA5Kgqx"
        "cK1BqXOxLykWsBU0xqh2sjIvqjQ6rn6uHC6Oqq2oW6R2qhCiR69xrKwnDDQ1sZq2z68mMA2x/6gIs8UtyaSyLUOp"
        "9apHMEwq1CW5rxMtlDHXlTMwTZyTrq2qm6xpsGKiOyW5L78xAKgvpZgqiCkeKHCnpSYPKwMxNC11rPElo6gqrYyR"
        "36XvpjitlyoLnC4s6qtlLA4neSiRph4v6q9PLCwugi3xLZWcZp8EKmgrqjGztckvzSqukJMuwitRMGqrGS8WKiOk"
        "lqyFtOc0xKwuMO0vcDLhKg8rHykTKL0pHC+4MiEU+qWbL2IjtDA4F2Gx+S0WDYkusRzJrCsoa6zKqV+uvS8FsLOr"
        "vy4GMl4jmSCWJPSuRCoDrhwnHKCGnTGxiLFXMSyt8yBCLouvCCvjHVmjkavoLxsm4x05nWiwRB4mpc2rWKhyp0gr"
        "WyoQqmUpcZ+Psl6sZ6fop9OnO5lOrGEmUihPLi8l9iACneWriB9FMPgk8SRZp60hgKlFrnWYbi7fqN+xwyQHLsCo"
        "46i9rbkkxSFTKhoa4p7koUaoPBu7LVgkIyhtHSUpDK4xqXYnvC7mp8SvWCpOrDWgBaN2rkCt+zD5sJmP4S/bpBYp"
        "lq8II6mnPBvSojGuHLLfITWoDSqEMMGz6KLMKC2sPyvhJR+obSrRqnUfRyQRLacnjKhZKd2p35nPqqSsLKTCIjSt"
        "m6xcKdqX1ixmKrYuk7CbMAiqFzYNs0W05S49MCUk3rB8sSUv2ar1F5oxZaRJL+Ox5rA6rlOtZCgcICqslRxQIAmk"
        "si5sqFOsz7PVMAWweSXmqRMv4q7JLH8rezUSMcCpzyOKrBgs9jFFsguuD6zcKM2r0i6yr7UtFy4MrOsmojK7Jl8t"
        "DChbLp+z46xNqmMq9iXiLBa0qrQcrYcmAquPLhwvDbIXrEow4a/dsEw09qwAKx+u6TCxMui0Frgzsaeznq04NKEw"
        "+zOVsiC0bLG2MeKvYLSLMV0u+S+6qf0m5jHIKHcoXKr8s/MyczTwGAKgm6/7rtM0+S3/M1MQJSispn4pdjBhr5Gs"
        "tyWXKQSxm64xpmsr3qSYKGCuUy43KQ2zJqynr2S23LNcshWvEqz8re+wTS9UsswxGjIyrrg0IqgYtASxna6oL900"
        "fqiPqIOwLDFDNZszEy0ltGatszUjJaEn+jNnLxSq7SkqrFw0orAusVivtSbzrPwtwTaDsYaTPqk6LwoqEKyVsoOh"
        "Xig7KhEghK8SMGot1CfUIxsweKzSLkEZDKRyLG8xWK4cqF6p1axXNckpd6j7qyktc5k/qJQighikK+kctanbnSEi"
        "zymesBWwjzFzJ1uhrCivp/QobygbL0at26kPrrgjmiNDq6Cbvq5IkvsxOBoqHOgwHq+nLsOtDi9erAIt3yuJqv6u"
        "syxmL4cnXa9YLoiob6r1rZOseKisKuep5yzNJ5Wo1SgWsW2wmzG8p68sJazEIgQuBqgzLLWsmqAgrs4nJDBOrcms"
        "ESvkpAgwrZwxJ2AwQ64rMTYqKalzLY2oOKlFKf+kTarLpSUtJS0FNz2vhS2ALWawGaHaog6vZqlhlkAnAZn2rOie"
        "PKepqtsgaq5PpgEplK+isAagLRlVrjirN6tqJhol+TDXKIAwKKnVLZsvijDkNAEwyydqKiCwSi63pU+y8qnAJ1Oq"
        "aq+4oXKVuiefplmubbF/L/ms1qaxLMso4quAprqvgycYq4anra6lJqKuWadGqMAwALXks1m07THQMRSuaLYKKFYw"
        "cLMspXUxvCufJv2zbbFAsZMtVrL0psm19a3LpekxQi7GqqGbKC8vrZWwjjaLNAwk2TGWsYErWyJ4GSCsa7BfLMyv"
        "HzCwJ2o0/6wzplQvO7HjoRQ13LL5qw0xTLaFOZYoybAKrn2tfSstMfIxza5PL5WlyCChL/kysad6Mio0PrIqMqgv"
        "gbYCrUktvzXUM7EytTErIRort6k9N5s0RTDPLUSeCzbVNZYuA7KMJTQnvSh/pn8wfrEvNEQ4+a7EsPS11ycVrRgu"
        "5DHBLimv/Ck/LWEwLTTksqMvGq1/Nk0kViT0rvyrgKutrCM0HzngMhsrpDD4sDo1vLQKsN6xGzRhKtgnhjgUL4Uq"
        "1SWWNfau/SzKs+ew5zTvqrexqzxvtUcw4LAhLN400LVktMu0FbHOso41HSsYL9uorC2sNHsw3ibhJUYrkB8lMIud"
        "RawNLL8pcSxfGF4raKl2qMarZKbqK58mYSkaqJ4uPKLisHotF61xLJQw7aN4r5+uUC5mJuCrRKSYmTwn1aNXr0Kx"
        "GzRTsMOYYKV/L0oz7SmvsJIwy6CssQ2wjKuWLAszdSlfrryrdDHsrfimp7GLrcEs57GsJJKgfLMEKGewwLI0NAgi"
        "ayuVMGwnQKmAK7YyczRLq7Up8anbI28pTS+MpoIpt6OnJMwviDLrKGosxZvbMH4wEagPsoouxqQKr9OzOTKLKvYu"
        "xa1yLp8qYC4hozWrOjg9p2sbnjO/Kx8xYahGtrqt1qghrXagryTbr9+mISKmKWgtiaslpB2r4CyyrTGzrCwwsaom"
        "JisQIsmsdKvurR0o+StJNGYwoSzBqyurFSoaoFm07qefJWgviixZq7YtqLADpJkvz6IqEaUh3SxgNP4YFayIL/cu"
        "OC3TLiUsrq8iLCIiKiz2KfSqU6xXMY0n5KrbJ3su/LLGL5MuN6oprwWhHTBSrSatqKMHLLWrsjGSrdQmzipUoQmo"
        "ea3HIfwqjaojM7crATB9LXKubjBBqOaoMijxMboyehvWKOIse66emjQxf66/F0wr+52bLKil1CEoLwikBqs/J3+g"
        "KytpK3ooFi/grxIoNrNSMU2xrLJxLcmu5qFLKsup3y8erp0wYDHIMCkeHzCwsCWzHCwgLB8tSKHpKkCvSCy6MEgo"
        "tqGGpVMyRyidJ58pmaBcLqWeOqhcnWKsIyrrr3CtR6xIpTYomzIYKyeueiIPMNuvj6x2ph4qiqKil9EqOyrmrDMt"
        "YiEHLnQjkaVjsHstHqgpHfyp1SwZLjwlsp7gpE0rozD7K/8sZBoqprEb+ye/I2WqkybZJAQpEKrkn30cqKkuqv6t"
        "Uy4gp/ApxCw/rJ+ssaZJrmas36Bsr7YqaCvvLGsruKypLG+uvK8opEKpoif5KPasyLIUs3cdoi2EtDGj9a9zqICx"
        "AqizLMupwyOHsGGth5uAraGcZK6GJP2vES5yJmYs+y6lNXoxdrHqrDWiIDLSrFueMLA7KSaZrrMFrXmwWysTJX0s"
        "3yZ/sRMotLCDK9Y1MyC7r/Ed7az1MM4vRyoaruMo+YzjLDAuujKNp6AzparOoM+zKbSyM/atd6rWLowsEKyuLyGn"
        "vSgvMEQmRjEgLhSdrK9FpjwxyCzkMJArpizSJpYvuDKOqkilQa7Sr2Qu6ylVpsylfq4eGVkth7GTL2otEi3XLWWt"
        "MSmNsbAryyn/siOt/ayxM5YoOaojJlaxvi9eMaencLf9MdkckLrEphik5Cffnpu16TUvNEEzs7ROsqOwkrZ0MBel"
        "8TJ3tcY2gTC0JU0gv7XKMO2lGLo7I2ExEyVzoGW0lTSaMyI0BLR0tByyl7WSMVCscDRSsyw36bSJMe8xTKd9L+Mx"
        "q7XYNCCvQqMotdYnwan5LA0vRi/iKnMxBatWnmW2lDRctaO5IytwMRq4MK1Nr54oKLHpsisfwyn+LEKw2y+FMKMv"
        "Fqwns8UyUSibJkyzlrFJLrUvc65csCmzVKDrsdceCSzIsl2twrQ9L1SxRp1UsJKqSK6rrlIySzF7Kkq1TrTks840"
        "QDM9NNCp/yNypikoqzaftSSryqlVsY8wmy4qIfou4CjkrK0wGTQXLkI2TjDTKhSx/bCis0CxUjFFMFaxzbSrKjY0"
        "E69qoO8xZi0yK0a15LKPseuv8q2UkDKyd61FsS008h6eKqq06SETrb2zzzX3tDcwGygoNoQvi7g3svEypDA/sn+z"
        "Tq5XrQq4c7PGIIe2ZzAboaky/CEhq8G5vjSPMAqgX7PemE6v9TAlrBWyJDeCrs4X+C7BrKY22TLbsRMm3qsit9Ew"
        "rZwssBitJjbcskU06qvVK2kyhCQ4NJsodC6esdCxVy9VMPsvw7W+poAoDzBRsqYx1C+pMBSvBzcWp+8txrBtthoy"
        "4Ss4Hfewzy4TsfGuvq9SMBw1mqeBLBUznqTnMiQxQShirYas5Ss4qOotVpyQmc0rTibbLomsC6SwLBYe/LUzMSKr"
        "PKxmMyuuxKy2LJ8nP6KvJwq0CazQrnEuJyIQMYYriDB+MIAyWbLCq12u0jS5MD+znR/Arce16qzCsBgxIS4TJfSo"
        "raxBLH+gBi9iKk4cXa3iLPooh6lkqjios66ftPgtlST3pFw08itfGw2tsqu1LRexYSipK9ct3y1uHeor4yU3tLen"
        "rSixqXEvgq+VqOQsPSHxqA0p6rAmrYAo5ShbnwWn/q/1KTAmf67RJkGpwbGyLN0h262Lp0Ilx6hZtEi0NrT+nlEo"
        "0akqrSq26ibjLdup1SiUJ/EylDHMLHAt0LL6tVi0N7SBrOAxtC7XISMtqa0rsLmva63IIDovBSLZrN0oah4trO2o"
        "o60RpzKsQrD1qviema0pm8ssBC4jKl4qVSa6MNaqRbB9sGonWKeGMNMthyOyoNaxdqj3rLQqf7A9rvasGiiWKy6r"
        "wbEbJAGoD7HAMEau8bDVsogvNKKiJlss1qljq+Qo9C3tqimuxZ+NK0KhPCbLsUKyc6nZpWKufLGHLjsmD6xDtcUz"
        "kaRvLrev36J2LSQtKzHmqrCpRSltKUem/yUAMQKpXq46pSWq+DHcLCq2Hq2tsFet+C7Zrc8sYLalHtoWXrKFIk2a"
        "dTGjsbSsmymqItYoPrDaL9QvCbA1L1oyJ66EK5IucigDsbiXj7KBLsMwKB/yrrQuWCq5sFiojCopLssi5LFhpYUv"
        "vawyrHyww5/5K28uRqQ0qhsrkSzTKLUoOKX4JhQmwyggoz6n8qOFpwArzSnkLLgnZKxZKlMweahPM6au7C8qsDMs"
        "TSyLn1Co9qmqqJgt05rkL4iiN6ttrb8v1aI1rAYwpCbUrf6dOChSLfwqhaUzIVevoSzos9+wkrFOtBQucy4uqpgv"
        "2TKsqq8omK5tLAgxmKtuKNEqjZaIrOMwY6LBLMOgNKwqLCMmr6nEMaIqRS3PLu4d/CwULEomUbLeKX+eCC7OqKSv"
        "gjClsQEsfywbLUO1MLa3MO41mq2asyclWixQrQqx9qznKT2znq3CKTEwrjXXLpY0CTT8LKUxlCvbK/YvB7WeraUs"
        "IiXcK6ArBLVirQ0tX6lYs7ox/ifpNAKrJ64uM5WhsS0wM1KuNi4isC2vPLTXLjs1Ni9ipK8q+jEAtKEgSrTGpREy"
        "tLBLLVa03DFPsCOpG7KeKJ8nDLkYMlsxdB+EsBgtRrTwMFi1o68Nqb+yMrGEtQSyxzDNM7goUqUArkwxPjHCsVMx"
        "NTATsN2vOrC7o52usDB1Mo+wmrCbiqSvnjX3GJ408DLVHTcvP7BrOfMsyZ5zLUQoDbWnMpS0dyo6tZ2wk7OLq9Sg"
        "YjTxrt2vei03ryUtxbS3MH23JzGNHw2z6q87Le6kIDTBtomzv7XSrrowurGrtWE1WK/FsGWwQrQcMWm0fyuCMWmv"
        "RK+MtRigwRx8tokzUqkRMDczHi8UMHirPDIKtiis+7FsrdMytjM6Kti4qi0ct/AyCCy4rXYquK55pJ61BDO2pZiy"
        "4ycLMv6zBrIDLnq3Y7Q8s2ewArbMtbQw36umtNKxdK1bNC8oybWbKQK4fy75MO0wq7IltjqtGrN+MMaxPrXhL7e0"
        "iqUyMVSzXqiVNNcs+rQgsEonFrDnrX20TjHKLbYyibGVr7G1e7PpLMkv57LfK+EmUS+1ruszv6leqlQkMLBLMc4w"
        "/jUeNBmt4qfONH6X67ShLOgklqIkMb6tNrDpMr6zMLDKMZatPbAQra8wkzXhNY+xC7MaNuswQ6wGnRQ1tC+BMUwq"
        "SyeFrJ0yiLMQM/COIiUnoEoyBrMFLdcfxC57NNwxCzOyNGEl5DDVMeQulDBpNSQzpzEhMy0zZq5sMjYxwzTQqY0w"
        "VzB5NBIs9rQjrHqnzRyTpR+yCa/GMVgzBa2RsLUvsilWs8wytTRDp9usOLafnOEww6ZWrV6tyzN1rbEteLFZKLoo"
        "Yhnbs8+wbqg8NA81TaQzpB+12zXdrw2zW660rn+z07M5rd0yXSmCLGa4HjDjMyyckS7htbIquTNDMp6kRi40KQot"
        "hbEMqRir5rDrsF2xVa4kqw600ifltLAldLCfsLgpICtjrkwtHzFLtSi0f6pALtGs4jAHrEuo6q1AsHSwlK6+rKiz"
        "yDBOMcGx1rFZMVSv/jGrMamwPTU3MLom"
    ),
)
