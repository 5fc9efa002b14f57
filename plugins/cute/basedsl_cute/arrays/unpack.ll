; made of unpack.c a174ae1ae1bd70e06e0c84dfc5be3e0c42ec29b6034b9a0b436af8379c27124d
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
  br i1 %10, label %11, label %70

11:                                               ; preds = %3
  call void @llvm.lifetime.start.p0(ptr nonnull %5)
  %12 = getelementptr inbounds nuw i8, ptr %5, i64 32
  store ptr null, ptr %12, align 8
  %13 = getelementptr inbounds nuw i8, ptr %2, i64 32
  %14 = load ptr, ptr %13, align 8
  %15 = call i32 %14(ptr noundef nonnull %0, ptr noundef nonnull %5)
  %16 = icmp eq i32 %15, 0
  br i1 %16, label %18, label %17

17:                                               ; preds = %11
  call void @PyErr_Clear()
  br label %68

18:                                               ; preds = %11
  %19 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %20 = load i64, ptr %19, align 8
  %21 = getelementptr inbounds nuw i8, ptr %2, i64 56
  %22 = load i64, ptr %21, align 8
  %23 = and i64 %22, %20
  %24 = getelementptr inbounds nuw i8, ptr %2, i64 48
  %25 = load i64, ptr %24, align 8
  %26 = icmp eq i64 %23, %25
  br i1 %26, label %27, label %68

27:                                               ; preds = %18
  %28 = getelementptr inbounds nuw i8, ptr %5, i64 20
  %29 = load i32, ptr %28, align 4
  %30 = zext i32 %29 to i64
  %31 = getelementptr inbounds nuw i8, ptr %2, i64 64
  %32 = load i64, ptr %31, align 8
  %33 = icmp eq i64 %32, %30
  br i1 %33, label %34, label %68

34:                                               ; preds = %27
  %35 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %36 = load i32, ptr %35, align 8
  %37 = sext i32 %36 to i64
  %38 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, %37
  br i1 %40, label %41, label %68

41:                                               ; preds = %34
  %42 = icmp eq i32 %36, 0
  %43 = load ptr, ptr %12, align 8
  %44 = icmp ne ptr %43, null
  %45 = select i1 %42, i1 true, i1 %44
  br i1 %45, label %46, label %68

46:                                               ; preds = %41
  %47 = getelementptr inbounds nuw i8, ptr %2, i64 104
  %48 = load i64, ptr %47, align 8
  %49 = and i64 %48, 2
  %50 = icmp eq i64 %49, 0
  br i1 %50, label %68, label %51

51:                                               ; preds = %46
  %52 = getelementptr inbounds nuw i8, ptr %2, i64 40
  %53 = load ptr, ptr %52, align 8
  %54 = call ptr @PyObject_GetAttr(ptr noundef nonnull %0, ptr noundef %53)
  %55 = icmp eq ptr %54, null
  br i1 %55, label %56, label %57

56:                                               ; preds = %51
  call void @PyErr_Clear()
  br label %68

57:                                               ; preds = %51
  call void @Py_DecRef(ptr noundef nonnull %54)
  %58 = icmp eq ptr %54, @_Py_FalseStruct
  br i1 %58, label %59, label %68

59:                                               ; preds = %57
  %60 = load ptr, ptr %5, align 8
  %61 = getelementptr inbounds nuw i8, ptr %5, i64 40
  %62 = load i64, ptr %61, align 8
  %63 = getelementptr inbounds nuw i8, ptr %60, i64 %62
  %64 = getelementptr inbounds nuw i8, ptr %5, i64 24
  %65 = load ptr, ptr %64, align 8
  %66 = load ptr, ptr %12, align 8
  %67 = call fastcc i64 @store(ptr noundef nonnull readonly %2, ptr noundef %63, ptr noundef %65, ptr noundef %66, ptr noundef %1)
  br label %68

68:                                               ; preds = %17, %18, %27, %34, %41, %46, %56, %57, %59
  %69 = phi i64 [ 0, %17 ], [ 0, %27 ], [ 0, %18 ], [ 0, %46 ], [ 0, %41 ], [ 0, %34 ], [ 0, %56 ], [ %67, %59 ], [ 0, %57 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %5)
  br label %160

70:                                               ; preds = %3
  %71 = load ptr, ptr %2, align 8
  %72 = icmp eq ptr %7, %71
  br i1 %72, label %73, label %122

73:                                               ; preds = %70
  call void @llvm.lifetime.start.p0(ptr nonnull %4)
  %74 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %75 = load ptr, ptr %74, align 8
  %76 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %77 = load ptr, ptr %76, align 8
  %78 = icmp eq ptr %75, %77
  br i1 %78, label %79, label %120

79:                                               ; preds = %73
  %80 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %81 = load i32, ptr %80, align 8
  %82 = sext i32 %81 to i64
  %83 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %84 = load i64, ptr %83, align 8
  %85 = icmp eq i64 %84, %82
  br i1 %85, label %86, label %120

86:                                               ; preds = %79
  %87 = getelementptr inbounds nuw i8, ptr %2, i64 104
  %88 = load i64, ptr %87, align 8
  %89 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %90 = load i32, ptr %89, align 8
  %91 = and i32 %90, 1024
  %92 = icmp eq i32 %91, 0
  %93 = select i1 %92, i64 1, i64 2
  %94 = and i64 %93, %88
  %95 = icmp eq i64 %94, 0
  br i1 %95, label %120, label %96

96:                                               ; preds = %86
  %97 = icmp sgt i32 %81, 0
  br i1 %97, label %98, label %114

98:                                               ; preds = %96
  %99 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %100 = load ptr, ptr %99, align 8
  %101 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %102 = load i64, ptr %101, align 8
  br label %103

103:                                              ; preds = %110, %98
  %104 = phi i64 [ 0, %98 ], [ %112, %110 ]
  %105 = getelementptr inbounds nuw i64, ptr %100, i64 %104
  %106 = load i64, ptr %105, align 8
  %107 = srem i64 %106, %102
  %108 = sdiv i64 %106, %102
  %109 = icmp eq i64 %107, 0
  br i1 %109, label %110, label %120

110:                                              ; preds = %103
  %111 = getelementptr inbounds nuw i64, ptr %4, i64 %104
  store i64 %108, ptr %111, align 8
  %112 = add nuw nsw i64 %104, 1
  %113 = icmp eq i64 %112, %82
  br i1 %113, label %114, label %103

114:                                              ; preds = %110, %96
  %115 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %116 = load ptr, ptr %115, align 8
  %117 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %118 = load ptr, ptr %117, align 8
  %119 = call fastcc i64 @store(ptr noundef nonnull readonly %2, ptr noundef %116, ptr noundef %118, ptr noundef nonnull %4, ptr noundef %1)
  br label %120

120:                                              ; preds = %103, %73, %79, %86, %114
  %121 = phi i64 [ 0, %73 ], [ %119, %114 ], [ 0, %86 ], [ 0, %79 ], [ 0, %103 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %4)
  br label %160

122:                                              ; preds = %70
  %123 = getelementptr inbounds nuw i8, ptr %2, i64 72
  %124 = load ptr, ptr %123, align 8
  %125 = tail call ptr @PyObject_CallOneArg(ptr noundef %124, ptr noundef nonnull %0)
  %126 = icmp eq ptr %125, null
  br i1 %126, label %135, label %127

127:                                              ; preds = %122
  %128 = getelementptr inbounds nuw i8, ptr %2, i64 80
  %129 = load i64, ptr %128, align 8
  %130 = icmp sgt i64 %129, 0
  br i1 %130, label %131, label %138

131:                                              ; preds = %127
  %132 = shl nuw i64 %129, 1
  %133 = getelementptr inbounds nuw i8, ptr %2, i64 160
  %134 = tail call i64 @llvm.smax.i64(i64 %132, i64 1)
  br label %143

135:                                              ; preds = %122
  tail call void @PyErr_Clear()
  br label %160

136:                                              ; preds = %143
  %137 = shl nsw i64 %150, 3
  br label %138

138:                                              ; preds = %136, %127
  %139 = phi i64 [ 8, %127 ], [ %137, %136 ]
  %140 = getelementptr inbounds nuw i8, ptr %125, i64 8
  %141 = load ptr, ptr %140, align 8
  %142 = icmp eq ptr %141, @PyBytes_Type
  br i1 %142, label %153, label %158

143:                                              ; preds = %131, %143
  %144 = phi i64 [ 0, %131 ], [ %151, %143 ]
  %145 = phi i64 [ 1, %131 ], [ %150, %143 ]
  %146 = getelementptr inbounds nuw %struct.Leaf, ptr %133, i64 %144
  %147 = load i64, ptr %146, align 8
  %148 = icmp eq i64 %147, 0
  %149 = zext i1 %148 to i64
  %150 = add nuw nsw i64 %145, %149
  %151 = add nuw nsw i64 %144, 1
  %152 = icmp eq i64 %151, %134
  br i1 %152, label %136, label %143

153:                                              ; preds = %138
  %154 = tail call i64 @PyBytes_Size(ptr noundef nonnull %125)
  %155 = icmp eq i64 %154, %139
  br i1 %155, label %156, label %158

156:                                              ; preds = %153
  %157 = tail call ptr @PyBytes_AsString(ptr noundef nonnull %125)
  tail call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 1 dereferenceable(1) %1, ptr noundef nonnull align 1 dereferenceable(1) %157, i64 %154, i1 false)
  br label %158

158:                                              ; preds = %138, %156, %153
  %159 = phi i64 [ 0, %153 ], [ 1, %156 ], [ 0, %138 ]
  tail call void @Py_DecRef(ptr noundef nonnull %125)
  br label %160

160:                                              ; preds = %135, %158, %120, %68
  %161 = phi i64 [ %69, %68 ], [ %121, %120 ], [ %159, %158 ], [ 0, %135 ]
  ret i64 %161
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare ptr @PyObject_CallOneArg(ptr noundef, ptr noundef)

declare void @PyErr_Clear()

declare void @llvm.lifetime.end.p0(ptr captures(none))

declare i64 @PyBytes_Size(ptr noundef)

declare ptr @PyBytes_AsString(ptr noundef)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

declare void @Py_DecRef(ptr noundef)

declare ptr @PyObject_GetAttr(ptr noundef, ptr noundef)

define internal fastcc range(i64 0, 2) i64 @store(ptr noundef readonly captures(none) %0, ptr noundef %1, ptr noundef readonly captures(none) %2, ptr noundef readonly captures(none) %3, ptr noundef writeonly captures(none) %4) unnamed_addr {
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %7 = load i64, ptr %6, align 8
  %8 = ptrtoint ptr %1 to i64
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 88
  %10 = load i64, ptr %9, align 8
  %11 = and i64 %10, %8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 96
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
  %52 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %53 = load i64, ptr %52, align 8
  %54 = and i64 %53, %51
  %55 = icmp eq i64 %54, 0
  br i1 %55, label %182, label %56

56:                                               ; preds = %50
  %57 = getelementptr inbounds nuw i8, ptr %0, i64 128
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
  %94 = getelementptr inbounds nuw i8, ptr %0, i64 136
  %95 = load i64, ptr %94, align 8
  %96 = icmp eq i64 %93, %95
  br i1 %96, label %101, label %182

97:                                               ; preds = %60
  %98 = getelementptr inbounds nuw i8, ptr %0, i64 136
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
  %119 = getelementptr inbounds nuw i8, ptr %0, i64 144
  %120 = load i64, ptr %119, align 8
  %121 = and i64 %120, %118
  %122 = icmp ne i64 %121, 0
  %123 = zext i1 %122 to i64
  %124 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %125 = load i64, ptr %124, align 8
  %126 = icmp eq i64 %125, %123
  br i1 %126, label %127, label %182

127:                                              ; preds = %117, %56
  store ptr %1, ptr %4, align 8
  %128 = icmp slt i64 %7, 1
  br i1 %128, label %182, label %129

129:                                              ; preds = %127
  %130 = shl nuw i64 %7, 1
  %131 = getelementptr inbounds nuw i8, ptr %0, i64 160
  %132 = getelementptr inbounds nuw i8, ptr %0, i64 120
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
