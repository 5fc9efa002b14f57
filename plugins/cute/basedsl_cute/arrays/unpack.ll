; made of unpack.c 5caf4c0e316dab40528ec556249772288f0c025020f6827f263f03d2fe4bdba0
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
  br i1 %14, label %15, label %182

15:                                               ; preds = %5
  %16 = icmp sgt i64 %7, 0
  br i1 %16, label %17, label %50

17:                                               ; preds = %15, %40
  %18 = phi i64 [ %41, %40 ], [ 0, %15 ]
  %19 = phi i64 [ %42, %40 ], [ 0, %15 ]
  %20 = getelementptr inbounds nuw i64, ptr %2, i64 %19
  %21 = load i64, ptr %20, align 8
  %22 = icmp sgt i64 %21, 2147483647
  br i1 %22, label %44, label %23

23:                                               ; preds = %17
  %24 = getelementptr inbounds nuw i64, ptr %3, i64 %19
  %25 = load i64, ptr %24, align 8
  %26 = add i64 %25, -2147483648
  %27 = icmp ult i64 %26, -4294967295
  br i1 %27, label %44, label %28

28:                                               ; preds = %23
  %29 = icmp eq i64 %21, 0
  br i1 %29, label %40, label %30

30:                                               ; preds = %28
  %31 = tail call i64 @llvm.abs.i64(i64 %25, i1 true)
  %32 = add nsw i64 %21, -1
  %33 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %32, i64 %31)
  %34 = extractvalue { i64, i1 } %33, 1
  br i1 %34, label %44, label %35

35:                                               ; preds = %30
  %36 = extractvalue { i64, i1 } %33, 0
  %37 = tail call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %18, i64 %36)
  %38 = extractvalue { i64, i1 } %37, 1
  %39 = extractvalue { i64, i1 } %37, 0
  br i1 %38, label %44, label %40

40:                                               ; preds = %35, %28
  %41 = phi i64 [ %39, %35 ], [ %18, %28 ]
  %42 = add nuw nsw i64 %19, 1
  %43 = icmp eq i64 %42, %7
  br i1 %43, label %44, label %17

44:                                               ; preds = %40, %35, %30, %23, %17
  %45 = phi i1 [ true, %35 ], [ false, %40 ], [ true, %23 ], [ true, %17 ], [ true, %30 ]
  %46 = phi i64 [ %39, %35 ], [ %41, %40 ], [ %18, %23 ], [ %18, %17 ], [ %18, %30 ]
  %47 = icmp sgt i64 %46, 2147483647
  %48 = select i1 %45, i1 true, i1 %47
  %49 = select i1 %48, i64 2, i64 1
  br label %50

50:                                               ; preds = %15, %44
  %51 = phi i64 [ 1, %15 ], [ %49, %44 ]
  %52 = getelementptr inbounds nuw i8, ptr %0, i64 128
  %53 = load i64, ptr %52, align 8
  %54 = and i64 %53, %51
  %55 = icmp eq i64 %54, 0
  br i1 %55, label %182, label %56

56:                                               ; preds = %50
  %57 = getelementptr inbounds nuw i8, ptr %0, i64 144
  %58 = load i64, ptr %57, align 8
  %59 = icmp eq i64 %58, 0
  br i1 %59, label %127, label %60

60:                                               ; preds = %56
  br i1 %16, label %61, label %97

61:                                               ; preds = %60, %79
  %62 = phi i64 [ %84, %79 ], [ 0, %60 ]
  %63 = phi i64 [ %83, %79 ], [ -1, %60 ]
  %64 = phi i64 [ %82, %79 ], [ 0, %60 ]
  %65 = phi i64 [ %81, %79 ], [ -1, %60 ]
  %66 = phi i64 [ %80, %79 ], [ 0, %60 ]
  %67 = getelementptr inbounds nuw i64, ptr %3, i64 %62
  %68 = load i64, ptr %67, align 8
  %69 = icmp eq i64 %68, 1
  br i1 %69, label %70, label %79

70:                                               ; preds = %61
  %71 = add nsw i64 %66, 1
  %72 = getelementptr inbounds nuw i64, ptr %2, i64 %62
  %73 = load i64, ptr %72, align 8
  %74 = icmp sgt i64 %73, 1
  %75 = zext i1 %74 to i64
  %76 = add nsw i64 %64, %75
  %77 = select i1 %74, i64 %62, i64 %63
  %78 = freeze i64 %76
  br label %79

79:                                               ; preds = %70, %61
  %80 = phi i64 [ %66, %61 ], [ %71, %70 ]
  %81 = phi i64 [ %65, %61 ], [ %62, %70 ]
  %82 = phi i64 [ %64, %61 ], [ %78, %70 ]
  %83 = phi i64 [ %63, %61 ], [ %77, %70 ]
  %84 = add nuw nsw i64 %62, 1
  %85 = icmp eq i64 %84, %7
  br i1 %85, label %86, label %61

86:                                               ; preds = %79
  %87 = icmp slt i64 %80, 2
  %88 = icmp eq i64 %82, 0
  %89 = select i1 %87, i1 true, i1 %88
  %90 = icmp eq i64 %82, 1
  %91 = freeze i1 %89
  %92 = select i1 %90, i64 %83, i64 -1
  %93 = select i1 %91, i64 %81, i64 %92
  %94 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %95 = load i64, ptr %94, align 8
  %96 = icmp eq i64 %93, %95
  br i1 %96, label %101, label %182

97:                                               ; preds = %60
  %98 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %99 = load i64, ptr %98, align 8
  %100 = icmp eq i64 %99, -1
  br i1 %100, label %117, label %182

101:                                              ; preds = %86, %113
  %102 = phi i64 [ %115, %113 ], [ 0, %86 ]
  %103 = phi i64 [ %114, %113 ], [ 0, %86 ]
  %104 = icmp eq i64 %102, %93
  br i1 %104, label %113, label %105

105:                                              ; preds = %101
  %106 = getelementptr inbounds nuw i64, ptr %2, i64 %102
  %107 = load i64, ptr %106, align 8
  %108 = icmp sgt i64 %107, 1
  br i1 %108, label %109, label %113

109:                                              ; preds = %105
  %110 = getelementptr inbounds nuw i64, ptr %3, i64 %102
  %111 = load i64, ptr %110, align 8
  %112 = or i64 %111, %103
  br label %113

113:                                              ; preds = %109, %105, %101
  %114 = phi i64 [ %112, %109 ], [ %103, %105 ], [ %103, %101 ]
  %115 = add nuw nsw i64 %102, 1
  %116 = icmp eq i64 %115, %7
  br i1 %116, label %117, label %101

117:                                              ; preds = %113, %97
  %118 = phi i64 [ 0, %97 ], [ %114, %113 ]
  %119 = getelementptr inbounds nuw i8, ptr %0, i64 160
  %120 = load i64, ptr %119, align 8
  %121 = and i64 %120, %118
  %122 = icmp ne i64 %121, 0
  %123 = zext i1 %122 to i64
  %124 = getelementptr inbounds nuw i8, ptr %0, i64 168
  %125 = load i64, ptr %124, align 8
  %126 = icmp eq i64 %125, %123
  br i1 %126, label %127, label %182

127:                                              ; preds = %117, %56
  store ptr %1, ptr %4, align 8
  %128 = icmp slt i64 %7, 1
  br i1 %128, label %182, label %129

129:                                              ; preds = %127
  %130 = shl nuw i64 %7, 1
  %131 = getelementptr inbounds nuw i8, ptr %0, i64 176
  %132 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %133 = tail call i64 @llvm.smax.i64(i64 %130, i64 1)
  br label %134

134:                                              ; preds = %129, %178
  %135 = phi ptr [ %4, %129 ], [ %179, %178 ]
  %136 = phi i64 [ 0, %129 ], [ %180, %178 ]
  %137 = getelementptr inbounds nuw %struct.Leaf, ptr %131, i64 %136
  %138 = icmp slt i64 %136, %7
  %139 = getelementptr inbounds nuw i64, ptr %2, i64 %136
  %140 = sub nsw i64 %136, %7
  %141 = getelementptr inbounds nuw i64, ptr %3, i64 %140
  %142 = select i1 %138, ptr %139, ptr %141
  %143 = load i64, ptr %142, align 8
  br i1 %138, label %148, label %144

144:                                              ; preds = %134
  %145 = getelementptr inbounds nuw i64, ptr %2, i64 %140
  %146 = load i64, ptr %145, align 8
  %147 = icmp sgt i64 %146, 1
  br label %148

148:                                              ; preds = %144, %134
  %149 = phi i1 [ true, %134 ], [ %147, %144 ]
  %150 = load i64, ptr %137, align 8
  %151 = icmp eq i64 %150, 0
  br i1 %151, label %157, label %152

152:                                              ; preds = %148
  %153 = getelementptr inbounds nuw i8, ptr %137, i64 8
  %154 = load i64, ptr %153, align 8
  %155 = icmp ne i64 %143, %154
  %156 = select i1 %155, i1 %149, i1 false
  br i1 %156, label %182, label %178

157:                                              ; preds = %148
  %158 = load i64, ptr %57, align 8
  %159 = icmp eq i64 %158, 0
  br i1 %159, label %160, label %168

160:                                              ; preds = %157
  %161 = getelementptr inbounds nuw i8, ptr %137, i64 8
  %162 = load i64, ptr %161, align 8
  %163 = icmp ne i64 %162, 1
  %164 = select i1 %163, i1 %149, i1 false
  br i1 %164, label %165, label %168

165:                                              ; preds = %160
  %166 = srem i64 %143, %162
  %167 = icmp eq i64 %166, 0
  br i1 %167, label %168, label %182

168:                                              ; preds = %165, %160, %157
  %169 = getelementptr inbounds nuw i8, ptr %135, i64 8
  %170 = load i64, ptr %132, align 8
  %171 = icmp eq i64 %170, 8
  br i1 %171, label %172, label %173

172:                                              ; preds = %168
  store i64 %143, ptr %169, align 8
  br label %178

173:                                              ; preds = %168
  %174 = add i64 %143, 2147483648
  %175 = icmp ult i64 %174, 4294967296
  br i1 %175, label %176, label %182

176:                                              ; preds = %173
  %177 = trunc nsw i64 %143 to i32
  store i32 %177, ptr %169, align 4
  br label %178

178:                                              ; preds = %176, %172, %152
  %179 = phi ptr [ %135, %152 ], [ %169, %176 ], [ %169, %172 ]
  %180 = add nuw nsw i64 %136, 1
  %181 = icmp eq i64 %180, %133
  br i1 %181, label %182, label %134

182:                                              ; preds = %152, %173, %165, %178, %127, %97, %117, %86, %50, %5
  %183 = phi i64 [ 0, %5 ], [ 0, %50 ], [ 0, %86 ], [ 0, %117 ], [ 0, %97 ], [ 1, %127 ], [ 0, %152 ], [ 0, %173 ], [ 0, %165 ], [ 1, %178 ]
  ret i64 %183
}

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)

declare i64 @llvm.abs.i64(i64, i1 immarg)

declare i64 @llvm.smax.i64(i64, i64)
