"""Python lines of PTX and machine code, by their line tables."""

from basedsl_cute.lowering.ptx.line_maps import of_ptx, of_sass

PTX = """.visible .entry k(
	.param .u32 p
)
{
	.reg .b32 	%r<9>;
	.loc	1 12 0
	ld.param.b32 	%r1, [p];
	.loc	2 7 9, function_name $L__info_string0, inlined_at 1 14 3
	mov.u32 	%r2, %ctaid.x;
$L__BB0_2:
	.loc	1 0 5
	ret;
}
	.file	1 "/a/k.py"
	.file	2 "/a/lib.py"
	.section	.debug_abbrev
	{
"""


def test_ptx():
    found = of_ptx(PTX)
    lines = found.text.splitlines()
    assert len(lines) == len(found.places)
    by_text = {line.strip(): places for line, places in zip(lines, found.places, strict=True)}
    assert by_text["ld.param.b32 	%r1, [p];"] == (("/a/k.py", 12),)
    assert by_text["mov.u32 	%r2, %ctaid.x;"] == (("/a/lib.py", 7), ("/a/k.py", 14))
    assert by_text["ret;"] == by_text[".reg .b32 	%r<9>;"] == by_text["$L__BB0_2:"] == ()
    assert ".loc" not in found.text and ".file" not in found.text and "debug" not in found.text


SASS = """.text.k:
	//## File "/a/lib.py", line 7 inlined at "/a/k.py", line 14
	//## File "/a/k.py", line 14
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/a/k.py", line 12
        /*0010*/              @!P0 EXIT ;
"""


def test_sass():
    found = of_sass(SASS)
    assert found.text.splitlines() == [
        ".text.k:",
        "/*0000*/  LDC R1, c[0x0][0x28] ;",
        "/*0010*/  @!P0 EXIT ;",
    ]
    assert found.places == [(), (("/a/lib.py", 7), ("/a/k.py", 14)), (("/a/k.py", 12),)]
