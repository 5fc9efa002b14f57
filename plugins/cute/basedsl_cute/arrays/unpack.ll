; made of unpack.c 4d6a4e387a12ab17634a9e8d7d05e581d3e9857d64bad3efda43f12054d960bd
%struct.Object = type { i64, ptr }
%struct.Tensor = type { ptr, i64, i32, i32, ptr, ptr, i64 }
%struct.Leaf = type { i64, i64 }

@PyBytes_Type = external global %struct.Object, align 8
@_Py_FalseStruct = external global %struct.Object, align 8

define range(i64 0, 2) i64 @basedsl_cute_unpack_tensor(ptr noundef %0, ptr noundef writeonly captures(none) %1, ptr noundef readonly captures(none) %2) {
  %4 = alloca [32 x i64], align 16
  %5 = alloca %struct.Tensor, align 8
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %9 = load ptr, ptr %8, align 8
  %10 = icmp eq ptr %7, %9
  br i1 %10, label %15, label %11

11:                                               ; preds = %3
  %12 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %13 = load ptr, ptr %12, align 8
  %14 = icmp eq ptr %7, %13
  br i1 %14, label %15, label %78

15:                                               ; preds = %11, %3
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %16 = getelementptr inbounds nuw i8, ptr %5, i64 32
  store ptr null, ptr %16, align 8
  %17 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %18 = load ptr, ptr %17, align 8
  %19 = call i32 %18(ptr noundef nonnull %0, ptr noundef nonnull %5)
  %20 = icmp eq i32 %19, 0
  br i1 %20, label %22, label %21

21:                                               ; preds = %15
  call void @PyErr_Clear()
  br label %76

22:                                               ; preds = %15
  %23 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %24 = load i64, ptr %23, align 8
  %25 = getelementptr inbounds nuw i8, ptr %2, i64 72
  %26 = load i64, ptr %25, align 8
  %27 = and i64 %26, %24
  %28 = getelementptr inbounds nuw i8, ptr %2, i64 64
  %29 = load i64, ptr %28, align 8
  %30 = icmp eq i64 %27, %29
  br i1 %30, label %31, label %76

31:                                               ; preds = %22
  %32 = getelementptr inbounds nuw i8, ptr %5, i64 20
  %33 = load i32, ptr %32, align 4
  %34 = zext i32 %33 to i64
  %35 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %36 = load i64, ptr %35, align 8
  %37 = icmp eq i64 %36, %34
  br i1 %37, label %38, label %76

38:                                               ; preds = %31
  %39 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %40 = load i32, ptr %39, align 8
  %41 = sext i32 %40 to i64
  %42 = getelementptr inbounds nuw i8, ptr %2, i64 96
  %43 = load i64, ptr %42, align 8
  %44 = icmp eq i64 %43, %41
  br i1 %44, label %45, label %76

45:                                               ; preds = %38
  %46 = icmp eq i32 %40, 0
  %47 = load ptr, ptr %16, align 8
  %48 = icmp ne ptr %47, null
  %49 = select i1 %46, i1 true, i1 %48
  br i1 %49, label %50, label %76

50:                                               ; preds = %45
  %51 = getelementptr inbounds nuw i8, ptr %2, i64 120
  %52 = load i64, ptr %51, align 8
  %53 = and i64 %52, 2
  %54 = icmp eq i64 %53, 0
  br i1 %54, label %76, label %55

55:                                               ; preds = %50
  %56 = getelementptr inbounds nuw i8, ptr %2, i64 48
  %57 = load ptr, ptr %56, align 8
  %58 = call ptr @PyObject_GetAttr(ptr noundef nonnull %0, ptr noundef %57)
  %59 = call fastcc i64 @is_false(ptr noundef %58)
  %60 = icmp eq i64 %59, 0
  br i1 %60, label %61, label %67

61:                                               ; preds = %55
  %62 = getelementptr inbounds nuw i8, ptr %2, i64 56
  %63 = load ptr, ptr %62, align 8
  %64 = call ptr @PyObject_CallNoArgs(ptr noundef %63)
  %65 = call fastcc i64 @is_false(ptr noundef %64)
  %66 = icmp eq i64 %65, 0
  br i1 %66, label %76, label %67

67:                                               ; preds = %61, %55
  %68 = load ptr, ptr %5, align 8
  %69 = getelementptr inbounds nuw i8, ptr %5, i64 40
  %70 = load i64, ptr %69, align 8
  %71 = getelementptr inbounds nuw i8, ptr %68, i64 %70
  %72 = getelementptr inbounds nuw i8, ptr %5, i64 24
  %73 = load ptr, ptr %72, align 8
  %74 = load ptr, ptr %16, align 8
  %75 = call fastcc i64 @store(ptr noundef nonnull readonly %2, ptr noundef %71, ptr noundef %73, ptr noundef %74, ptr noundef %1)
  br label %76

76:                                               ; preds = %21, %22, %31, %38, %45, %50, %61, %67
  %77 = phi i64 [ 0, %21 ], [ 0, %31 ], [ 0, %22 ], [ %75, %67 ], [ 0, %50 ], [ 0, %45 ], [ 0, %38 ], [ 0, %61 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %168

78:                                               ; preds = %11
  %79 = load ptr, ptr %2, align 8
  %80 = icmp eq ptr %7, %79
  br i1 %80, label %81, label %130

81:                                               ; preds = %78
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  %82 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %83 = load ptr, ptr %82, align 8
  %84 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %85 = load ptr, ptr %84, align 8
  %86 = icmp eq ptr %83, %85
  br i1 %86, label %87, label %128

87:                                               ; preds = %81
  %88 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %89 = load i32, ptr %88, align 8
  %90 = sext i32 %89 to i64
  %91 = getelementptr inbounds nuw i8, ptr %2, i64 96
  %92 = load i64, ptr %91, align 8
  %93 = icmp eq i64 %92, %90
  br i1 %93, label %94, label %128

94:                                               ; preds = %87
  %95 = getelementptr inbounds nuw i8, ptr %2, i64 120
  %96 = load i64, ptr %95, align 8
  %97 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %98 = load i32, ptr %97, align 8
  %99 = and i32 %98, 1024
  %100 = icmp eq i32 %99, 0
  %101 = select i1 %100, i64 1, i64 2
  %102 = and i64 %101, %96
  %103 = icmp eq i64 %102, 0
  br i1 %103, label %128, label %104

104:                                              ; preds = %94
  %105 = icmp sgt i32 %89, 0
  br i1 %105, label %106, label %122

106:                                              ; preds = %104
  %107 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %108 = load ptr, ptr %107, align 8
  %109 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %110 = load i64, ptr %109, align 8
  br label %111

111:                                              ; preds = %118, %106
  %112 = phi i64 [ 0, %106 ], [ %120, %118 ]
  %113 = getelementptr inbounds nuw i64, ptr %108, i64 %112
  %114 = load i64, ptr %113, align 8
  %115 = srem i64 %114, %110
  %116 = sdiv i64 %114, %110
  %117 = icmp eq i64 %115, 0
  br i1 %117, label %118, label %128

118:                                              ; preds = %111
  %119 = getelementptr inbounds nuw i64, ptr %4, i64 %112
  store i64 %116, ptr %119, align 8
  %120 = add nuw nsw i64 %112, 1
  %121 = icmp eq i64 %120, %90
  br i1 %121, label %122, label %111

122:                                              ; preds = %118, %104
  %123 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %124 = load ptr, ptr %123, align 8
  %125 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %126 = load ptr, ptr %125, align 8
  %127 = call fastcc i64 @store(ptr noundef nonnull readonly %2, ptr noundef %124, ptr noundef %126, ptr noundef nonnull %4, ptr noundef %1)
  br label %128

128:                                              ; preds = %111, %81, %87, %94, %122
  %129 = phi i64 [ 0, %81 ], [ %127, %122 ], [ 0, %94 ], [ 0, %87 ], [ 0, %111 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %168

130:                                              ; preds = %78
  %131 = getelementptr inbounds nuw i8, ptr %2, i64 88
  %132 = load ptr, ptr %131, align 8
  %133 = tail call ptr @PyObject_CallOneArg(ptr noundef %132, ptr noundef nonnull %0)
  %134 = icmp eq ptr %133, null
  br i1 %134, label %143, label %135

135:                                              ; preds = %130
  %136 = getelementptr inbounds nuw i8, ptr %2, i64 96
  %137 = load i64, ptr %136, align 8
  %138 = icmp sgt i64 %137, 0
  br i1 %138, label %139, label %146

139:                                              ; preds = %135
  %140 = shl nuw i64 %137, 1
  %141 = getelementptr inbounds nuw i8, ptr %2, i64 176
  %142 = tail call i64 @llvm.smax.i64(i64 %140, i64 1)
  br label %151

143:                                              ; preds = %130
  tail call void @PyErr_Clear()
  br label %168

144:                                              ; preds = %151
  %145 = shl nsw i64 %158, 3
  br label %146

146:                                              ; preds = %144, %135
  %147 = phi i64 [ 8, %135 ], [ %145, %144 ]
  %148 = getelementptr inbounds nuw i8, ptr %133, i64 8
  %149 = load ptr, ptr %148, align 8
  %150 = icmp eq ptr %149, @PyBytes_Type
  br i1 %150, label %161, label %166

151:                                              ; preds = %139, %151
  %152 = phi i64 [ 0, %139 ], [ %159, %151 ]
  %153 = phi i64 [ 1, %139 ], [ %158, %151 ]
  %154 = getelementptr inbounds nuw %struct.Leaf, ptr %141, i64 %152
  %155 = load i64, ptr %154, align 8
  %156 = icmp eq i64 %155, 0
  %157 = zext i1 %156 to i64
  %158 = add nuw nsw i64 %153, %157
  %159 = add nuw nsw i64 %152, 1
  %160 = icmp eq i64 %159, %142
  br i1 %160, label %144, label %151

161:                                              ; preds = %146
  %162 = tail call i64 @PyBytes_Size(ptr noundef nonnull %133)
  %163 = icmp eq i64 %162, %147
  br i1 %163, label %164, label %166

164:                                              ; preds = %161
  %165 = tail call ptr @PyBytes_AsString(ptr noundef nonnull %133)
  tail call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 1 dereferenceable(1) %1, ptr noundef nonnull align 1 dereferenceable(1) %165, i64 %162, i1 false)
  br label %166

166:                                              ; preds = %146, %164, %161
  %167 = phi i64 [ 0, %161 ], [ 1, %164 ], [ 0, %146 ]
  tail call void @Py_DecRef(ptr noundef nonnull %133)
  br label %168

168:                                              ; preds = %143, %166, %128, %76
  %169 = phi i64 [ %77, %76 ], [ %129, %128 ], [ %167, %166 ], [ 0, %143 ]
  ret i64 %169
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare ptr @PyObject_CallOneArg(ptr noundef, ptr noundef)

declare void @PyErr_Clear()

declare void @llvm.lifetime.end.p0(ptr captures(none))

declare i64 @PyBytes_Size(ptr noundef)

declare ptr @PyBytes_AsString(ptr noundef)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

declare void @Py_DecRef(ptr noundef)

define internal fastcc range(i64 0, 2) i64 @is_false(ptr noundef %0) unnamed_addr {
  %2 = icmp eq ptr %0, null
  br i1 %2, label %3, label %4

3:                                                ; preds = %1
  tail call void @PyErr_Clear()
  br label %7

4:                                                ; preds = %1
  tail call void @Py_DecRef(ptr noundef nonnull %0)
  %5 = icmp eq ptr %0, @_Py_FalseStruct
  %6 = zext i1 %5 to i64
  br label %7

7:                                                ; preds = %4, %3
  %8 = phi i64 [ %6, %4 ], [ 0, %3 ]
  ret i64 %8
}

declare ptr @PyObject_GetAttr(ptr noundef, ptr noundef)

declare ptr @PyObject_CallNoArgs(ptr noundef)

define internal fastcc range(i64 0, 2) i64 @store(ptr noundef readonly captures(none) %0, ptr noundef %1, ptr noundef readonly captures(none) %2, ptr noundef readonly captures(none) %3, ptr noundef writeonly captures(none) %4) unnamed_addr {
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 96
  %7 = load i64, ptr %6, align 8
  %8 = ptrtoint ptr %1 to i64
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 104
  %10 = load i64, ptr %9, align 8
  %11 = and i64 %10, %8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %13 = load i64, ptr %12, align 8
  %14 = icmp eq i64 %11, %13
  br i1 %14, label %15, label %194

15:                                               ; preds = %5
  %16 = icmp eq ptr %1, null
  br i1 %16, label %17, label %27

17:                                               ; preds = %15
  %18 = icmp sgt i64 %7, 0
  br i1 %18, label %22, label %194

19:                                               ; preds = %22
  %20 = add nuw nsw i64 %23, 1
  %21 = icmp eq i64 %20, %7
  br i1 %21, label %194, label %22

22:                                               ; preds = %17, %19
  %23 = phi i64 [ %20, %19 ], [ 0, %17 ]
  %24 = getelementptr inbounds nuw i64, ptr %2, i64 %23
  %25 = load i64, ptr %24, align 8
  %26 = icmp eq i64 %25, 0
  br i1 %26, label %27, label %19

27:                                               ; preds = %22, %15
  %28 = icmp sgt i64 %7, 0
  br i1 %28, label %29, label %62

29:                                               ; preds = %27, %52
  %30 = phi i64 [ %53, %52 ], [ 0, %27 ]
  %31 = phi i64 [ %54, %52 ], [ 0, %27 ]
  %32 = getelementptr inbounds nuw i64, ptr %2, i64 %31
  %33 = load i64, ptr %32, align 8
  %34 = icmp sgt i64 %33, 2147483647
  br i1 %34, label %56, label %35

35:                                               ; preds = %29
  %36 = getelementptr inbounds nuw i64, ptr %3, i64 %31
  %37 = load i64, ptr %36, align 8
  %38 = add i64 %37, -2147483648
  %39 = icmp ult i64 %38, -4294967295
  br i1 %39, label %56, label %40

40:                                               ; preds = %35
  %41 = icmp eq i64 %33, 0
  br i1 %41, label %52, label %42

42:                                               ; preds = %40
  %43 = tail call i64 @llvm.abs.i64(i64 %37, i1 true)
  %44 = add nsw i64 %33, -1
  %45 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %44, i64 %43)
  %46 = extractvalue { i64, i1 } %45, 1
  br i1 %46, label %56, label %47

47:                                               ; preds = %42
  %48 = extractvalue { i64, i1 } %45, 0
  %49 = tail call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %30, i64 %48)
  %50 = extractvalue { i64, i1 } %49, 1
  %51 = extractvalue { i64, i1 } %49, 0
  br i1 %50, label %56, label %52

52:                                               ; preds = %47, %40
  %53 = phi i64 [ %51, %47 ], [ %30, %40 ]
  %54 = add nuw nsw i64 %31, 1
  %55 = icmp eq i64 %54, %7
  br i1 %55, label %56, label %29

56:                                               ; preds = %52, %47, %42, %35, %29
  %57 = phi i1 [ true, %47 ], [ false, %52 ], [ true, %35 ], [ true, %29 ], [ true, %42 ]
  %58 = phi i64 [ %51, %47 ], [ %53, %52 ], [ %30, %35 ], [ %30, %29 ], [ %30, %42 ]
  %59 = icmp sgt i64 %58, 2147483647
  %60 = select i1 %57, i1 true, i1 %59
  %61 = select i1 %60, i64 2, i64 1
  br label %62

62:                                               ; preds = %27, %56
  %63 = phi i64 [ 1, %27 ], [ %61, %56 ]
  %64 = getelementptr inbounds nuw i8, ptr %0, i64 128
  %65 = load i64, ptr %64, align 8
  %66 = and i64 %65, %63
  %67 = icmp eq i64 %66, 0
  br i1 %67, label %194, label %68

68:                                               ; preds = %62
  %69 = getelementptr inbounds nuw i8, ptr %0, i64 144
  %70 = load i64, ptr %69, align 8
  %71 = icmp eq i64 %70, 0
  br i1 %71, label %139, label %72

72:                                               ; preds = %68
  br i1 %28, label %73, label %109

73:                                               ; preds = %72, %91
  %74 = phi i64 [ %96, %91 ], [ 0, %72 ]
  %75 = phi i64 [ %95, %91 ], [ -1, %72 ]
  %76 = phi i64 [ %94, %91 ], [ 0, %72 ]
  %77 = phi i64 [ %93, %91 ], [ -1, %72 ]
  %78 = phi i64 [ %92, %91 ], [ 0, %72 ]
  %79 = getelementptr inbounds nuw i64, ptr %3, i64 %74
  %80 = load i64, ptr %79, align 8
  %81 = icmp eq i64 %80, 1
  br i1 %81, label %82, label %91

82:                                               ; preds = %73
  %83 = add nsw i64 %78, 1
  %84 = getelementptr inbounds nuw i64, ptr %2, i64 %74
  %85 = load i64, ptr %84, align 8
  %86 = icmp sgt i64 %85, 1
  %87 = zext i1 %86 to i64
  %88 = add nsw i64 %76, %87
  %89 = select i1 %86, i64 %74, i64 %75
  %90 = freeze i64 %88
  br label %91

91:                                               ; preds = %82, %73
  %92 = phi i64 [ %78, %73 ], [ %83, %82 ]
  %93 = phi i64 [ %77, %73 ], [ %74, %82 ]
  %94 = phi i64 [ %76, %73 ], [ %90, %82 ]
  %95 = phi i64 [ %75, %73 ], [ %89, %82 ]
  %96 = add nuw nsw i64 %74, 1
  %97 = icmp eq i64 %96, %7
  br i1 %97, label %98, label %73

98:                                               ; preds = %91
  %99 = icmp slt i64 %92, 2
  %100 = icmp eq i64 %94, 0
  %101 = select i1 %99, i1 true, i1 %100
  %102 = icmp eq i64 %94, 1
  %103 = freeze i1 %101
  %104 = select i1 %102, i64 %95, i64 -1
  %105 = select i1 %103, i64 %93, i64 %104
  %106 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %107 = load i64, ptr %106, align 8
  %108 = icmp eq i64 %105, %107
  br i1 %108, label %113, label %194

109:                                              ; preds = %72
  %110 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %111 = load i64, ptr %110, align 8
  %112 = icmp eq i64 %111, -1
  br i1 %112, label %129, label %194

113:                                              ; preds = %98, %125
  %114 = phi i64 [ %127, %125 ], [ 0, %98 ]
  %115 = phi i64 [ %126, %125 ], [ 0, %98 ]
  %116 = icmp eq i64 %114, %105
  br i1 %116, label %125, label %117

117:                                              ; preds = %113
  %118 = getelementptr inbounds nuw i64, ptr %2, i64 %114
  %119 = load i64, ptr %118, align 8
  %120 = icmp sgt i64 %119, 1
  br i1 %120, label %121, label %125

121:                                              ; preds = %117
  %122 = getelementptr inbounds nuw i64, ptr %3, i64 %114
  %123 = load i64, ptr %122, align 8
  %124 = or i64 %123, %115
  br label %125

125:                                              ; preds = %121, %117, %113
  %126 = phi i64 [ %124, %121 ], [ %115, %117 ], [ %115, %113 ]
  %127 = add nuw nsw i64 %114, 1
  %128 = icmp eq i64 %127, %7
  br i1 %128, label %129, label %113

129:                                              ; preds = %125, %109
  %130 = phi i64 [ 0, %109 ], [ %126, %125 ]
  %131 = getelementptr inbounds nuw i8, ptr %0, i64 160
  %132 = load i64, ptr %131, align 8
  %133 = and i64 %132, %130
  %134 = icmp ne i64 %133, 0
  %135 = zext i1 %134 to i64
  %136 = getelementptr inbounds nuw i8, ptr %0, i64 168
  %137 = load i64, ptr %136, align 8
  %138 = icmp eq i64 %137, %135
  br i1 %138, label %139, label %194

139:                                              ; preds = %129, %68
  store ptr %1, ptr %4, align 8
  %140 = icmp slt i64 %7, 1
  br i1 %140, label %194, label %141

141:                                              ; preds = %139
  %142 = shl nuw i64 %7, 1
  %143 = getelementptr inbounds nuw i8, ptr %0, i64 176
  %144 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %145 = tail call i64 @llvm.smax.i64(i64 %142, i64 1)
  br label %146

146:                                              ; preds = %141, %190
  %147 = phi ptr [ %4, %141 ], [ %191, %190 ]
  %148 = phi i64 [ 0, %141 ], [ %192, %190 ]
  %149 = getelementptr inbounds nuw %struct.Leaf, ptr %143, i64 %148
  %150 = icmp slt i64 %148, %7
  %151 = getelementptr inbounds nuw i64, ptr %2, i64 %148
  %152 = sub nsw i64 %148, %7
  %153 = getelementptr inbounds nuw i64, ptr %3, i64 %152
  %154 = select i1 %150, ptr %151, ptr %153
  %155 = load i64, ptr %154, align 8
  br i1 %150, label %160, label %156

156:                                              ; preds = %146
  %157 = getelementptr inbounds nuw i64, ptr %2, i64 %152
  %158 = load i64, ptr %157, align 8
  %159 = icmp sgt i64 %158, 1
  br label %160

160:                                              ; preds = %156, %146
  %161 = phi i1 [ true, %146 ], [ %159, %156 ]
  %162 = load i64, ptr %149, align 8
  %163 = icmp eq i64 %162, 0
  br i1 %163, label %169, label %164

164:                                              ; preds = %160
  %165 = getelementptr inbounds nuw i8, ptr %149, i64 8
  %166 = load i64, ptr %165, align 8
  %167 = icmp ne i64 %155, %166
  %168 = select i1 %167, i1 %161, i1 false
  br i1 %168, label %194, label %190

169:                                              ; preds = %160
  %170 = load i64, ptr %69, align 8
  %171 = icmp eq i64 %170, 0
  br i1 %171, label %172, label %180

172:                                              ; preds = %169
  %173 = getelementptr inbounds nuw i8, ptr %149, i64 8
  %174 = load i64, ptr %173, align 8
  %175 = icmp ne i64 %174, 1
  %176 = select i1 %175, i1 %161, i1 false
  br i1 %176, label %177, label %180

177:                                              ; preds = %172
  %178 = srem i64 %155, %174
  %179 = icmp eq i64 %178, 0
  br i1 %179, label %180, label %194

180:                                              ; preds = %177, %172, %169
  %181 = getelementptr inbounds nuw i8, ptr %147, i64 8
  %182 = load i64, ptr %144, align 8
  %183 = icmp eq i64 %182, 8
  br i1 %183, label %184, label %185

184:                                              ; preds = %180
  store i64 %155, ptr %181, align 8
  br label %190

185:                                              ; preds = %180
  %186 = add i64 %155, 2147483648
  %187 = icmp ult i64 %186, 4294967296
  br i1 %187, label %188, label %194

188:                                              ; preds = %185
  %189 = trunc nsw i64 %155 to i32
  store i32 %189, ptr %181, align 4
  br label %190

190:                                              ; preds = %188, %184, %164
  %191 = phi ptr [ %147, %164 ], [ %181, %188 ], [ %181, %184 ]
  %192 = add nuw nsw i64 %148, 1
  %193 = icmp eq i64 %192, %145
  br i1 %193, label %194, label %146

194:                                              ; preds = %19, %164, %185, %177, %190, %139, %17, %109, %129, %98, %62, %5
  %195 = phi i64 [ 0, %5 ], [ 0, %62 ], [ 0, %98 ], [ 0, %129 ], [ 0, %164 ], [ 0, %109 ], [ 0, %17 ], [ 1, %139 ], [ 0, %185 ], [ 0, %177 ], [ 1, %190 ], [ 0, %19 ]
  ret i64 %195
}

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)

declare i64 @llvm.abs.i64(i64, i1 immarg)

declare i64 @llvm.smax.i64(i64, i64)
