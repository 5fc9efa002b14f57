; made of unpack.c ef42b0de66c3fecd4bd75ede1b394c954c5b284fc6f21bdfc0197029999fca34
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
  br i1 %14, label %15, label %203

15:                                               ; preds = %5
  %16 = icmp eq ptr %1, null
  br i1 %16, label %17, label %27

17:                                               ; preds = %15
  %18 = icmp sgt i64 %7, 0
  br i1 %18, label %22, label %203

19:                                               ; preds = %22
  %20 = add nuw nsw i64 %23, 1
  %21 = icmp eq i64 %20, %7
  br i1 %21, label %203, label %22

22:                                               ; preds = %17, %19
  %23 = phi i64 [ %20, %19 ], [ 0, %17 ]
  %24 = getelementptr inbounds nuw i64, ptr %2, i64 %23
  %25 = load i64, ptr %24, align 8
  %26 = icmp eq i64 %25, 0
  br i1 %26, label %27, label %19

27:                                               ; preds = %22, %15
  %28 = icmp sgt i64 %7, 0
  br i1 %28, label %29, label %71

29:                                               ; preds = %27, %57
  %30 = phi i64 [ %59, %57 ], [ 0, %27 ]
  %31 = phi i64 [ %60, %57 ], [ 0, %27 ]
  %32 = phi i64 [ %58, %57 ], [ 1, %27 ]
  %33 = getelementptr inbounds nuw i64, ptr %2, i64 %31
  %34 = load i64, ptr %33, align 8
  %35 = icmp sgt i64 %34, 2147483647
  br i1 %35, label %62, label %36

36:                                               ; preds = %29
  %37 = getelementptr inbounds nuw i64, ptr %3, i64 %31
  %38 = load i64, ptr %37, align 8
  %39 = add i64 %38, -2147483648
  %40 = icmp ult i64 %39, -4294967295
  br i1 %40, label %62, label %41

41:                                               ; preds = %36
  %42 = icmp eq i64 %34, 0
  br i1 %42, label %57, label %43

43:                                               ; preds = %41
  %44 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %32, i64 %34)
  %45 = extractvalue { i64, i1 } %44, 1
  %46 = extractvalue { i64, i1 } %44, 0
  br i1 %45, label %62, label %47

47:                                               ; preds = %43
  %48 = tail call i64 @llvm.abs.i64(i64 %38, i1 true)
  %49 = add nsw i64 %34, -1
  %50 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %49, i64 %48)
  %51 = extractvalue { i64, i1 } %50, 1
  br i1 %51, label %62, label %52

52:                                               ; preds = %47
  %53 = extractvalue { i64, i1 } %50, 0
  %54 = tail call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %30, i64 %53)
  %55 = extractvalue { i64, i1 } %54, 1
  %56 = extractvalue { i64, i1 } %54, 0
  br i1 %55, label %62, label %57

57:                                               ; preds = %52, %41
  %58 = phi i64 [ %46, %52 ], [ %32, %41 ]
  %59 = phi i64 [ %56, %52 ], [ %30, %41 ]
  %60 = add nuw nsw i64 %31, 1
  %61 = icmp eq i64 %60, %7
  br i1 %61, label %62, label %29

62:                                               ; preds = %57, %52, %47, %43, %36, %29
  %63 = phi i1 [ true, %52 ], [ false, %57 ], [ true, %36 ], [ true, %29 ], [ true, %43 ], [ true, %47 ]
  %64 = phi i64 [ %46, %52 ], [ %58, %57 ], [ %32, %36 ], [ %32, %29 ], [ %46, %43 ], [ %46, %47 ]
  %65 = phi i64 [ %56, %52 ], [ %59, %57 ], [ %30, %36 ], [ %30, %29 ], [ %30, %43 ], [ %30, %47 ]
  %66 = icmp sgt i64 %65, 2147483647
  %67 = icmp sgt i64 %64, 2147483647
  %68 = select i1 %63, i1 true, i1 %66
  %69 = select i1 %68, i1 true, i1 %67
  %70 = select i1 %69, i64 2, i64 1
  br label %71

71:                                               ; preds = %27, %62
  %72 = phi i64 [ 1, %27 ], [ %70, %62 ]
  %73 = getelementptr inbounds nuw i8, ptr %0, i64 128
  %74 = load i64, ptr %73, align 8
  %75 = and i64 %74, %72
  %76 = icmp eq i64 %75, 0
  br i1 %76, label %203, label %77

77:                                               ; preds = %71
  %78 = getelementptr inbounds nuw i8, ptr %0, i64 144
  %79 = load i64, ptr %78, align 8
  %80 = icmp eq i64 %79, 0
  br i1 %80, label %148, label %81

81:                                               ; preds = %77
  br i1 %28, label %82, label %118

82:                                               ; preds = %81, %100
  %83 = phi i64 [ %105, %100 ], [ 0, %81 ]
  %84 = phi i64 [ %104, %100 ], [ -1, %81 ]
  %85 = phi i64 [ %103, %100 ], [ 0, %81 ]
  %86 = phi i64 [ %102, %100 ], [ -1, %81 ]
  %87 = phi i64 [ %101, %100 ], [ 0, %81 ]
  %88 = getelementptr inbounds nuw i64, ptr %3, i64 %83
  %89 = load i64, ptr %88, align 8
  %90 = icmp eq i64 %89, 1
  br i1 %90, label %91, label %100

91:                                               ; preds = %82
  %92 = add nsw i64 %87, 1
  %93 = getelementptr inbounds nuw i64, ptr %2, i64 %83
  %94 = load i64, ptr %93, align 8
  %95 = icmp sgt i64 %94, 1
  %96 = zext i1 %95 to i64
  %97 = add nsw i64 %85, %96
  %98 = select i1 %95, i64 %83, i64 %84
  %99 = freeze i64 %97
  br label %100

100:                                              ; preds = %91, %82
  %101 = phi i64 [ %87, %82 ], [ %92, %91 ]
  %102 = phi i64 [ %86, %82 ], [ %83, %91 ]
  %103 = phi i64 [ %85, %82 ], [ %99, %91 ]
  %104 = phi i64 [ %84, %82 ], [ %98, %91 ]
  %105 = add nuw nsw i64 %83, 1
  %106 = icmp eq i64 %105, %7
  br i1 %106, label %107, label %82

107:                                              ; preds = %100
  %108 = icmp slt i64 %101, 2
  %109 = icmp eq i64 %103, 0
  %110 = select i1 %108, i1 true, i1 %109
  %111 = icmp eq i64 %103, 1
  %112 = freeze i1 %110
  %113 = select i1 %111, i64 %104, i64 -1
  %114 = select i1 %112, i64 %102, i64 %113
  %115 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %116 = load i64, ptr %115, align 8
  %117 = icmp eq i64 %114, %116
  br i1 %117, label %122, label %203

118:                                              ; preds = %81
  %119 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %120 = load i64, ptr %119, align 8
  %121 = icmp eq i64 %120, -1
  br i1 %121, label %138, label %203

122:                                              ; preds = %107, %134
  %123 = phi i64 [ %136, %134 ], [ 0, %107 ]
  %124 = phi i64 [ %135, %134 ], [ 0, %107 ]
  %125 = icmp eq i64 %123, %114
  br i1 %125, label %134, label %126

126:                                              ; preds = %122
  %127 = getelementptr inbounds nuw i64, ptr %2, i64 %123
  %128 = load i64, ptr %127, align 8
  %129 = icmp sgt i64 %128, 1
  br i1 %129, label %130, label %134

130:                                              ; preds = %126
  %131 = getelementptr inbounds nuw i64, ptr %3, i64 %123
  %132 = load i64, ptr %131, align 8
  %133 = or i64 %132, %124
  br label %134

134:                                              ; preds = %130, %126, %122
  %135 = phi i64 [ %133, %130 ], [ %124, %126 ], [ %124, %122 ]
  %136 = add nuw nsw i64 %123, 1
  %137 = icmp eq i64 %136, %7
  br i1 %137, label %138, label %122

138:                                              ; preds = %134, %118
  %139 = phi i64 [ 0, %118 ], [ %135, %134 ]
  %140 = getelementptr inbounds nuw i8, ptr %0, i64 160
  %141 = load i64, ptr %140, align 8
  %142 = and i64 %141, %139
  %143 = icmp ne i64 %142, 0
  %144 = zext i1 %143 to i64
  %145 = getelementptr inbounds nuw i8, ptr %0, i64 168
  %146 = load i64, ptr %145, align 8
  %147 = icmp eq i64 %146, %144
  br i1 %147, label %148, label %203

148:                                              ; preds = %138, %77
  store ptr %1, ptr %4, align 8
  %149 = icmp slt i64 %7, 1
  br i1 %149, label %203, label %150

150:                                              ; preds = %148
  %151 = shl nuw i64 %7, 1
  %152 = getelementptr inbounds nuw i8, ptr %0, i64 176
  %153 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %154 = tail call i64 @llvm.smax.i64(i64 %151, i64 1)
  br label %155

155:                                              ; preds = %150, %199
  %156 = phi ptr [ %4, %150 ], [ %200, %199 ]
  %157 = phi i64 [ 0, %150 ], [ %201, %199 ]
  %158 = getelementptr inbounds nuw %struct.Leaf, ptr %152, i64 %157
  %159 = icmp slt i64 %157, %7
  %160 = getelementptr inbounds nuw i64, ptr %2, i64 %157
  %161 = sub nsw i64 %157, %7
  %162 = getelementptr inbounds nuw i64, ptr %3, i64 %161
  %163 = select i1 %159, ptr %160, ptr %162
  %164 = load i64, ptr %163, align 8
  br i1 %159, label %169, label %165

165:                                              ; preds = %155
  %166 = getelementptr inbounds nuw i64, ptr %2, i64 %161
  %167 = load i64, ptr %166, align 8
  %168 = icmp sgt i64 %167, 1
  br label %169

169:                                              ; preds = %165, %155
  %170 = phi i1 [ true, %155 ], [ %168, %165 ]
  %171 = load i64, ptr %158, align 8
  %172 = icmp eq i64 %171, 0
  br i1 %172, label %178, label %173

173:                                              ; preds = %169
  %174 = getelementptr inbounds nuw i8, ptr %158, i64 8
  %175 = load i64, ptr %174, align 8
  %176 = icmp ne i64 %164, %175
  %177 = select i1 %176, i1 %170, i1 false
  br i1 %177, label %203, label %199

178:                                              ; preds = %169
  %179 = load i64, ptr %78, align 8
  %180 = icmp eq i64 %179, 0
  br i1 %180, label %181, label %189

181:                                              ; preds = %178
  %182 = getelementptr inbounds nuw i8, ptr %158, i64 8
  %183 = load i64, ptr %182, align 8
  %184 = icmp ne i64 %183, 1
  %185 = select i1 %184, i1 %170, i1 false
  br i1 %185, label %186, label %189

186:                                              ; preds = %181
  %187 = srem i64 %164, %183
  %188 = icmp eq i64 %187, 0
  br i1 %188, label %189, label %203

189:                                              ; preds = %186, %181, %178
  %190 = getelementptr inbounds nuw i8, ptr %156, i64 8
  %191 = load i64, ptr %153, align 8
  %192 = icmp eq i64 %191, 8
  br i1 %192, label %193, label %194

193:                                              ; preds = %189
  store i64 %164, ptr %190, align 8
  br label %199

194:                                              ; preds = %189
  %195 = add i64 %164, 2147483648
  %196 = icmp ult i64 %195, 4294967296
  br i1 %196, label %197, label %203

197:                                              ; preds = %194
  %198 = trunc nsw i64 %164 to i32
  store i32 %198, ptr %190, align 4
  br label %199

199:                                              ; preds = %197, %193, %173
  %200 = phi ptr [ %156, %173 ], [ %190, %197 ], [ %190, %193 ]
  %201 = add nuw nsw i64 %157, 1
  %202 = icmp eq i64 %201, %154
  br i1 %202, label %203, label %155

203:                                              ; preds = %19, %173, %194, %186, %199, %148, %17, %118, %138, %107, %71, %5
  %204 = phi i64 [ 0, %5 ], [ 0, %71 ], [ 0, %107 ], [ 0, %138 ], [ 0, %173 ], [ 0, %118 ], [ 0, %17 ], [ 1, %148 ], [ 0, %194 ], [ 0, %186 ], [ 1, %199 ], [ 0, %19 ]
  ret i64 %204
}

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)

declare i64 @llvm.abs.i64(i64, i1 immarg)

declare i64 @llvm.smax.i64(i64, i64)
