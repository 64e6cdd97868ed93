module @jit_train_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg1: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg2: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg3: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg4: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg5: tensor<8x32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg6: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg7: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg8: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg9: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg10: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg11: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg12: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg13: tensor<8x32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg14: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg15: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg16: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg17: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg18: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg19: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg20: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg21: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg22: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg23: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg24: tensor<8x32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg25: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg26: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg27: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg28: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg29: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg30: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg31: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg32: tensor<8x32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg33: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg34: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg35: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg36: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg37: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg38: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg39: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg40: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg41: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg42: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg43: tensor<8x32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg44: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg45: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg46: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg47: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg48: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg49: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg50: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg51: tensor<8x32x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {}]>}, %arg52: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg53: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg54: tensor<256x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg55: tensor<256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg56: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg57: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}, %arg58: tensor<16x128xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg59: tensor<16x128xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<1024x256xf32> {jax.result_info = "result[0]['embedding']"}, tensor<1024x256xf32> {jax.result_info = "result[0]['layers'][0]['down']"}, tensor<256x8x32xf32> {jax.result_info = "result[0]['layers'][0]['key']"}, tensor<256xf32> {jax.result_info = "result[0]['layers'][0]['norm1']"}, tensor<256xf32> {jax.result_info = "result[0]['layers'][0]['norm2']"}, tensor<8x32x256xf32> {jax.result_info = "result[0]['layers'][0]['out']"}, tensor<256x8x32xf32> {jax.result_info = "result[0]['layers'][0]['query']"}, tensor<256x1024xf32> {jax.result_info = "result[0]['layers'][0]['up']"}, tensor<256x8x32xf32> {jax.result_info = "result[0]['layers'][0]['value']"}, tensor<1024x256xf32> {jax.result_info = "result[0]['layers'][1]['down']"}, tensor<256x8x32xf32> {jax.result_info = "result[0]['layers'][1]['key']"}, tensor<256xf32> {jax.result_info = "result[0]['layers'][1]['norm1']"}, tensor<256xf32> {jax.result_info = "result[0]['layers'][1]['norm2']"}, tensor<8x32x256xf32> {jax.result_info = "result[0]['layers'][1]['out']"}, tensor<256x8x32xf32> {jax.result_info = "result[0]['layers'][1]['query']"}, tensor<256x1024xf32> {jax.result_info = "result[0]['layers'][1]['up']"}, tensor<256x8x32xf32> {jax.result_info = "result[0]['layers'][1]['value']"}, tensor<256xf32> {jax.result_info = "result[0]['norm']"}, tensor<128x256xf32> {jax.result_info = "result[0]['position']"}, tensor<1024x256xf32> {jax.result_info = "result[1]['embedding']"}, tensor<1024x256xf32> {jax.result_info = "result[1]['layers'][0]['down']"}, tensor<256x8x32xf32> {jax.result_info = "result[1]['layers'][0]['key']"}, tensor<256xf32> {jax.result_info = "result[1]['layers'][0]['norm1']"}, tensor<256xf32> {jax.result_info = "result[1]['layers'][0]['norm2']"}, tensor<8x32x256xf32> {jax.result_info = "result[1]['layers'][0]['out']"}, tensor<256x8x32xf32> {jax.result_info = "result[1]['layers'][0]['query']"}, tensor<256x1024xf32> {jax.result_info = "result[1]['layers'][0]['up']"}, tensor<256x8x32xf32> {jax.result_info = "result[1]['layers'][0]['value']"}, tensor<1024x256xf32> {jax.result_info = "result[1]['layers'][1]['down']"}, tensor<256x8x32xf32> {jax.result_info = "result[1]['layers'][1]['key']"}, tensor<256xf32> {jax.result_info = "result[1]['layers'][1]['norm1']"}, tensor<256xf32> {jax.result_info = "result[1]['layers'][1]['norm2']"}, tensor<8x32x256xf32> {jax.result_info = "result[1]['layers'][1]['out']"}, tensor<256x8x32xf32> {jax.result_info = "result[1]['layers'][1]['query']"}, tensor<256x1024xf32> {jax.result_info = "result[1]['layers'][1]['up']"}, tensor<256x8x32xf32> {jax.result_info = "result[1]['layers'][1]['value']"}, tensor<256xf32> {jax.result_info = "result[1]['norm']"}, tensor<128x256xf32> {jax.result_info = "result[1]['position']"}, tensor<1024x256xf32> {jax.result_info = "result[2]['embedding']"}, tensor<1024x256xf32> {jax.result_info = "result[2]['layers'][0]['down']"}, tensor<256x8x32xf32> {jax.result_info = "result[2]['layers'][0]['key']"}, tensor<256xf32> {jax.result_info = "result[2]['layers'][0]['norm1']"}, tensor<256xf32> {jax.result_info = "result[2]['layers'][0]['norm2']"}, tensor<8x32x256xf32> {jax.result_info = "result[2]['layers'][0]['out']"}, tensor<256x8x32xf32> {jax.result_info = "result[2]['layers'][0]['query']"}, tensor<256x1024xf32> {jax.result_info = "result[2]['layers'][0]['up']"}, tensor<256x8x32xf32> {jax.result_info = "result[2]['layers'][0]['value']"}, tensor<1024x256xf32> {jax.result_info = "result[2]['layers'][1]['down']"}, tensor<256x8x32xf32> {jax.result_info = "result[2]['layers'][1]['key']"}, tensor<256xf32> {jax.result_info = "result[2]['layers'][1]['norm1']"}, tensor<256xf32> {jax.result_info = "result[2]['layers'][1]['norm2']"}, tensor<8x32x256xf32> {jax.result_info = "result[2]['layers'][1]['out']"}, tensor<256x8x32xf32> {jax.result_info = "result[2]['layers'][1]['query']"}, tensor<256x1024xf32> {jax.result_info = "result[2]['layers'][1]['up']"}, tensor<256x8x32xf32> {jax.result_info = "result[2]['layers'][1]['value']"}, tensor<256xf32> {jax.result_info = "result[2]['norm']"}, tensor<128x256xf32> {jax.result_info = "result[2]['position']"}, tensor<f32> {jax.result_info = "result[3]"}, tensor<f32> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x128xi32>
    %1 = stablehlo.compare LT, %arg58, %0, SIGNED : (tensor<16x128xi32>, tensor<16x128xi32>) -> tensor<16x128xi1>
    %c_0 = stablehlo.constant dense<1024> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x128xi32>
    %3 = stablehlo.add %arg58, %2 : tensor<16x128xi32>
    %4 = stablehlo.select %1, %3, %arg58 : tensor<16x128xi1>, tensor<16x128xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<16x128xi32>) -> tensor<16x128x1xi32>
    %6 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 256>}> : (tensor<1024x256xf32>, tensor<16x128x1xi32>) -> tensor<16x128x256xf32>
    %7 = stablehlo.broadcast_in_dim %arg18, dims = [1, 2] : (tensor<128x256xf32>) -> tensor<1x128x256xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x128x256xf32>) -> tensor<16x128x256xf32>
    %9 = stablehlo.add %6, %8 : tensor<16x128x256xf32>
    %10 = stablehlo.multiply %9, %9 : tensor<16x128x256xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %cst_1 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<16x128x1xf32>
    %cst_2 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %16 = stablehlo.add %14, %15 : tensor<16x128x1xf32>
    %17 = stablehlo.rsqrt %16 : tensor<16x128x1xf32>
    %18 = stablehlo.divide %17, %16 : tensor<16x128x1xf32>
    %cst_3 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %20 = stablehlo.multiply %19, %18 : tensor<16x128x1xf32>
    %21 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %22 = stablehlo.multiply %9, %21 : tensor<16x128x256xf32>
    %23 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %25 = stablehlo.multiply %22, %24 : tensor<16x128x256xf32>
    %26 = stablehlo.dot_general %25, %arg6, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x8x32xf32>) -> tensor<16x128x8x32xf32>
    %27 = stablehlo.dot_general %25, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x8x32xf32>) -> tensor<16x128x8x32xf32>
    %28 = stablehlo.dot_general %25, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x8x32xf32>) -> tensor<16x128x8x32xf32>
    %29 = stablehlo.dot_general %26, %27, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x128xf32>
    %cst_4 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %30 = stablehlo.sqrt %cst_4 : tensor<f32>
    %31 = stablehlo.convert %30 : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<16x8x128x128xf32>
    %33 = stablehlo.divide %29, %32 : tensor<16x8x128x128xf32>
    %34 = stablehlo.iota dim = 0 : tensor<128xi32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<128xi32>) -> tensor<128x1xi32>
    %36 = stablehlo.broadcast_in_dim %34, dims = [1] : (tensor<128xi32>) -> tensor<1x128xi32>
    %37 = stablehlo.broadcast_in_dim %35, dims = [0, 1] : (tensor<128x1xi32>) -> tensor<128x128xi32>
    %38 = stablehlo.broadcast_in_dim %36, dims = [0, 1] : (tensor<1x128xi32>) -> tensor<128x128xi32>
    %39 = stablehlo.compare GE, %37, %38, SIGNED : (tensor<128x128xi32>, tensor<128x128xi32>) -> tensor<128x128xi1>
    %cst_5 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %40:2 = call @_where(%39, %33, %cst_5) : (tensor<128x128xi1>, tensor<16x8x128x128xf32>, tensor<f32>) -> (tensor<16x8x128x128xf32>, tensor<16x8x128x128xi1>)
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %41 = stablehlo.reduce(%40#0 init: %cst_6) applies stablehlo.maximum across dimensions = [3] : (tensor<16x8x128x128xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16x8x128xf32>
    %43 = stablehlo.maximum %42, %41 : tensor<16x8x128xf32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0, 1, 2] : (tensor<16x8x128xf32>) -> tensor<16x8x128x1xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %46 = stablehlo.subtract %40#0, %45 : tensor<16x8x128x128xf32>
    %47 = stablehlo.exponential %46 : tensor<16x8x128x128xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %48 = stablehlo.reduce(%47 init: %cst_8) applies stablehlo.add across dimensions = [3] : (tensor<16x8x128x128xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [0, 1, 2] : (tensor<16x8x128xf32>) -> tensor<16x8x128x1xf32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %51 = stablehlo.divide %47, %50 : tensor<16x8x128x128xf32>
    %52 = stablehlo.multiply %49, %49 : tensor<16x8x128x1xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x8x128x1xf32>
    %54 = stablehlo.divide %53, %52 : tensor<16x8x128x1xf32>
    %55 = stablehlo.dot_general %28, %51, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x8x128x128xf32>) -> tensor<16x8x32x128xf32>
    %56 = stablehlo.transpose %55, dims = [0, 3, 1, 2] : (tensor<16x8x32x128xf32>) -> tensor<16x128x8x32xf32>
    %57 = stablehlo.dot_general %56, %arg5, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<8x32x256xf32>) -> tensor<16x128x256xf32>
    %58 = stablehlo.add %9, %57 : tensor<16x128x256xf32>
    %59 = stablehlo.multiply %58, %58 : tensor<16x128x256xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %60 = stablehlo.reduce(%59 init: %cst_10) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %cst_11 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %63 = stablehlo.divide %61, %62 : tensor<16x128x1xf32>
    %cst_12 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %65 = stablehlo.add %63, %64 : tensor<16x128x1xf32>
    %66 = stablehlo.rsqrt %65 : tensor<16x128x1xf32>
    %67 = stablehlo.divide %66, %65 : tensor<16x128x1xf32>
    %cst_13 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %69 = stablehlo.multiply %68, %67 : tensor<16x128x1xf32>
    %70 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %71 = stablehlo.multiply %58, %70 : tensor<16x128x256xf32>
    %72 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %73 = stablehlo.broadcast_in_dim %72, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %74 = stablehlo.multiply %71, %73 : tensor<16x128x256xf32>
    %75 = stablehlo.dot_general %74, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x1024xf32>) -> tensor<16x128x1024xf32>
    %76 = stablehlo.multiply %75, %75 : tensor<16x128x1024xf32>
    %77 = stablehlo.multiply %76, %75 : tensor<16x128x1024xf32>
    %78 = stablehlo.multiply %75, %75 : tensor<16x128x1024xf32>
    %cst_14 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %79 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %80 = stablehlo.multiply %79, %78 : tensor<16x128x1024xf32>
    %cst_15 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %81 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %82 = stablehlo.multiply %81, %77 : tensor<16x128x1024xf32>
    %83 = stablehlo.add %75, %82 : tensor<16x128x1024xf32>
    %cst_16 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %85 = stablehlo.multiply %84, %83 : tensor<16x128x1024xf32>
    %86 = stablehlo.tanh %85 : tensor<16x128x1024xf32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %87 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %88 = stablehlo.subtract %87, %86 : tensor<16x128x1024xf32>
    %cst_18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %89 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %90 = stablehlo.add %89, %86 : tensor<16x128x1024xf32>
    %cst_19 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %92 = stablehlo.multiply %91, %90 : tensor<16x128x1024xf32>
    %93 = stablehlo.multiply %75, %92 : tensor<16x128x1024xf32>
    %94 = stablehlo.dot_general %93, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<1024x256xf32>) -> tensor<16x128x256xf32>
    %95 = stablehlo.add %58, %94 : tensor<16x128x256xf32>
    %96 = stablehlo.multiply %95, %95 : tensor<16x128x256xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %97 = stablehlo.reduce(%96 init: %cst_20) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %cst_21 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %99 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %100 = stablehlo.divide %98, %99 : tensor<16x128x1xf32>
    %cst_22 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %102 = stablehlo.add %100, %101 : tensor<16x128x1xf32>
    %103 = stablehlo.rsqrt %102 : tensor<16x128x1xf32>
    %104 = stablehlo.divide %103, %102 : tensor<16x128x1xf32>
    %cst_23 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %105 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %106 = stablehlo.multiply %105, %104 : tensor<16x128x1xf32>
    %107 = stablehlo.broadcast_in_dim %103, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %108 = stablehlo.multiply %95, %107 : tensor<16x128x256xf32>
    %109 = stablehlo.broadcast_in_dim %arg11, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %110 = stablehlo.broadcast_in_dim %109, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %111 = stablehlo.multiply %108, %110 : tensor<16x128x256xf32>
    %112 = stablehlo.dot_general %111, %arg14, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x8x32xf32>) -> tensor<16x128x8x32xf32>
    %113 = stablehlo.dot_general %111, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x8x32xf32>) -> tensor<16x128x8x32xf32>
    %114 = stablehlo.dot_general %111, %arg16, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x8x32xf32>) -> tensor<16x128x8x32xf32>
    %115 = stablehlo.dot_general %112, %113, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x128xf32>
    %cst_24 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %116 = stablehlo.sqrt %cst_24 : tensor<f32>
    %117 = stablehlo.convert %116 : tensor<f32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<f32>) -> tensor<16x8x128x128xf32>
    %119 = stablehlo.divide %115, %118 : tensor<16x8x128x128xf32>
    %120 = stablehlo.iota dim = 0 : tensor<128xi32>
    %121 = stablehlo.broadcast_in_dim %120, dims = [0] : (tensor<128xi32>) -> tensor<128x1xi32>
    %122 = stablehlo.broadcast_in_dim %120, dims = [1] : (tensor<128xi32>) -> tensor<1x128xi32>
    %123 = stablehlo.broadcast_in_dim %121, dims = [0, 1] : (tensor<128x1xi32>) -> tensor<128x128xi32>
    %124 = stablehlo.broadcast_in_dim %122, dims = [0, 1] : (tensor<1x128xi32>) -> tensor<128x128xi32>
    %125 = stablehlo.compare GE, %123, %124, SIGNED : (tensor<128x128xi32>, tensor<128x128xi32>) -> tensor<128x128xi1>
    %cst_25 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %126:2 = call @_where(%125, %119, %cst_25) : (tensor<128x128xi1>, tensor<16x8x128x128xf32>, tensor<f32>) -> (tensor<16x8x128x128xf32>, tensor<16x8x128x128xi1>)
    %cst_26 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %127 = stablehlo.reduce(%126#0 init: %cst_26) applies stablehlo.maximum across dimensions = [3] : (tensor<16x8x128x128xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %128 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<16x8x128xf32>
    %129 = stablehlo.maximum %128, %127 : tensor<16x8x128xf32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2] : (tensor<16x8x128xf32>) -> tensor<16x8x128x1xf32>
    %131 = stablehlo.broadcast_in_dim %130, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %132 = stablehlo.subtract %126#0, %131 : tensor<16x8x128x128xf32>
    %133 = stablehlo.exponential %132 : tensor<16x8x128x128xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %134 = stablehlo.reduce(%133 init: %cst_28) applies stablehlo.add across dimensions = [3] : (tensor<16x8x128x128xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [0, 1, 2] : (tensor<16x8x128xf32>) -> tensor<16x8x128x1xf32>
    %136 = stablehlo.broadcast_in_dim %135, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %137 = stablehlo.divide %133, %136 : tensor<16x8x128x128xf32>
    %138 = stablehlo.multiply %135, %135 : tensor<16x8x128x1xf32>
    %cst_29 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %139 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<16x8x128x1xf32>
    %140 = stablehlo.divide %139, %138 : tensor<16x8x128x1xf32>
    %141 = stablehlo.dot_general %114, %137, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x8x128x128xf32>) -> tensor<16x8x32x128xf32>
    %142 = stablehlo.transpose %141, dims = [0, 3, 1, 2] : (tensor<16x8x32x128xf32>) -> tensor<16x128x8x32xf32>
    %143 = stablehlo.dot_general %142, %arg13, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<8x32x256xf32>) -> tensor<16x128x256xf32>
    %144 = stablehlo.add %95, %143 : tensor<16x128x256xf32>
    %145 = stablehlo.multiply %144, %144 : tensor<16x128x256xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %146 = stablehlo.reduce(%145 init: %cst_30) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %147 = stablehlo.broadcast_in_dim %146, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %cst_31 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %148 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %149 = stablehlo.divide %147, %148 : tensor<16x128x1xf32>
    %cst_32 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %151 = stablehlo.add %149, %150 : tensor<16x128x1xf32>
    %152 = stablehlo.rsqrt %151 : tensor<16x128x1xf32>
    %153 = stablehlo.divide %152, %151 : tensor<16x128x1xf32>
    %cst_33 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %154 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %155 = stablehlo.multiply %154, %153 : tensor<16x128x1xf32>
    %156 = stablehlo.broadcast_in_dim %152, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %157 = stablehlo.multiply %144, %156 : tensor<16x128x256xf32>
    %158 = stablehlo.broadcast_in_dim %arg12, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %160 = stablehlo.multiply %157, %159 : tensor<16x128x256xf32>
    %161 = stablehlo.dot_general %160, %arg15, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x1024xf32>) -> tensor<16x128x1024xf32>
    %162 = stablehlo.multiply %161, %161 : tensor<16x128x1024xf32>
    %163 = stablehlo.multiply %162, %161 : tensor<16x128x1024xf32>
    %164 = stablehlo.multiply %161, %161 : tensor<16x128x1024xf32>
    %cst_34 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %165 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %166 = stablehlo.multiply %165, %164 : tensor<16x128x1024xf32>
    %cst_35 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %167 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %168 = stablehlo.multiply %167, %163 : tensor<16x128x1024xf32>
    %169 = stablehlo.add %161, %168 : tensor<16x128x1024xf32>
    %cst_36 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %170 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %171 = stablehlo.multiply %170, %169 : tensor<16x128x1024xf32>
    %172 = stablehlo.tanh %171 : tensor<16x128x1024xf32>
    %cst_37 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %173 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %174 = stablehlo.subtract %173, %172 : tensor<16x128x1024xf32>
    %cst_38 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %175 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %176 = stablehlo.add %175, %172 : tensor<16x128x1024xf32>
    %cst_39 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %177 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %178 = stablehlo.multiply %177, %176 : tensor<16x128x1024xf32>
    %179 = stablehlo.multiply %161, %178 : tensor<16x128x1024xf32>
    %180 = stablehlo.dot_general %179, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<1024x256xf32>) -> tensor<16x128x256xf32>
    %181 = stablehlo.add %144, %180 : tensor<16x128x256xf32>
    %182 = stablehlo.multiply %181, %181 : tensor<16x128x256xf32>
    %cst_40 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %183 = stablehlo.reduce(%182 init: %cst_40) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %184 = stablehlo.broadcast_in_dim %183, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %cst_41 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %185 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %186 = stablehlo.divide %184, %185 : tensor<16x128x1xf32>
    %cst_42 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %187 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %188 = stablehlo.add %186, %187 : tensor<16x128x1xf32>
    %189 = stablehlo.rsqrt %188 : tensor<16x128x1xf32>
    %190 = stablehlo.divide %189, %188 : tensor<16x128x1xf32>
    %cst_43 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %191 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %192 = stablehlo.multiply %191, %190 : tensor<16x128x1xf32>
    %193 = stablehlo.broadcast_in_dim %189, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %194 = stablehlo.multiply %181, %193 : tensor<16x128x256xf32>
    %195 = stablehlo.broadcast_in_dim %arg17, dims = [2] : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %197 = stablehlo.multiply %194, %196 : tensor<16x128x256xf32>
    %198 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %199 = stablehlo.dot_general %197, %198, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<256x1024xf32>) -> tensor<16x128x1024xf32>
    %200:3 = call @log_softmax(%199) : (tensor<16x128x1024xf32>) -> (tensor<16x128x1024xf32>, tensor<16x128x1024xf32>, tensor<16x128x1xf32>)
    %201 = stablehlo.broadcast_in_dim %arg59, dims = [0, 1] : (tensor<16x128xi32>) -> tensor<16x128x1xi32>
    %202:2 = call @take_along_axis(%200#0, %201) : (tensor<16x128x1024xf32>, tensor<16x128x1xi32>) -> (tensor<16x128x1xf32>, tensor<16x128x1x1xi32>)
    %cst_44 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %203 = stablehlo.reduce(%202#0 init: %cst_44) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_45 = stablehlo.constant dense<2.048000e+03> : tensor<f32>
    %204 = stablehlo.divide %203, %cst_45 : tensor<f32>
    %205 = stablehlo.negate %204 : tensor<f32>
    %cst_46 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %206 = stablehlo.negate %cst_46 : tensor<f32>
    %cst_47 = stablehlo.constant dense<2.048000e+03> : tensor<f32>
    %207 = stablehlo.divide %206, %cst_47 : tensor<f32>
    %208 = stablehlo.broadcast_in_dim %207, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %209 = call @take_along_axis_0(%202#1, %208) : (tensor<16x128x1x1xi32>, tensor<16x128x1xf32>) -> tensor<16x128x1024xf32>
    %210 = call @log_softmax_1(%200#1, %200#2, %209) : (tensor<16x128x1024xf32>, tensor<16x128x1xf32>, tensor<16x128x1024xf32>) -> tensor<16x128x1024xf32>
    %211 = stablehlo.dot_general %210, %197, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<16x128x256xf32>) -> tensor<1024x256xf32>
    %212 = stablehlo.transpose %211, dims = [1, 0] : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %213 = stablehlo.dot_general %210, %198, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<256x1024xf32>) -> tensor<16x128x256xf32>
    %214 = stablehlo.transpose %212, dims = [1, 0] : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
    %215 = stablehlo.multiply %194, %213 : tensor<16x128x256xf32>
    %cst_48 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %216 = stablehlo.reduce(%215 init: %cst_48) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<256xf32>
    %217 = stablehlo.reshape %216 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %218 = stablehlo.broadcast_in_dim %195, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %219 = stablehlo.multiply %213, %218 : tensor<16x128x256xf32>
    %cst_49 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %220 = stablehlo.reduce(%217 init: %cst_49) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x256xf32>, tensor<f32>) -> tensor<256xf32>
    %221 = stablehlo.multiply %181, %219 : tensor<16x128x256xf32>
    %cst_50 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %222 = stablehlo.reduce(%221 init: %cst_50) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %223 = stablehlo.reshape %222 : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %224 = stablehlo.broadcast_in_dim %189, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %225 = stablehlo.multiply %219, %224 : tensor<16x128x256xf32>
    %226 = stablehlo.multiply %223, %192 : tensor<16x128x1xf32>
    %cst_51 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %227 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %228 = stablehlo.divide %226, %227 : tensor<16x128x1xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %229 = stablehlo.reduce(%228 init: %cst_52) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<16x128xf32>
    %230 = stablehlo.broadcast_in_dim %229, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x256xf32>
    %231 = stablehlo.multiply %181, %230 : tensor<16x128x256xf32>
    %232 = stablehlo.add %225, %231 : tensor<16x128x256xf32>
    %233 = stablehlo.multiply %230, %181 : tensor<16x128x256xf32>
    %234 = stablehlo.add %232, %233 : tensor<16x128x256xf32>
    %235 = stablehlo.dot_general %234, %179, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<16x128x1024xf32>) -> tensor<256x1024xf32>
    %236 = stablehlo.transpose %235, dims = [1, 0] : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
    %237 = stablehlo.dot_general %234, %arg9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<1024x256xf32>) -> tensor<16x128x1024xf32>
    %238 = stablehlo.multiply %161, %237 : tensor<16x128x1024xf32>
    %239 = stablehlo.multiply %237, %178 : tensor<16x128x1024xf32>
    %cst_53 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %240 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %241 = stablehlo.multiply %240, %238 : tensor<16x128x1024xf32>
    %242 = stablehlo.multiply %241, %174 : tensor<16x128x1024xf32>
    %243 = stablehlo.multiply %242, %172 : tensor<16x128x1024xf32>
    %244 = stablehlo.add %242, %243 : tensor<16x128x1024xf32>
    %cst_54 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %245 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %246 = stablehlo.multiply %245, %244 : tensor<16x128x1024xf32>
    %247 = stablehlo.add %239, %246 : tensor<16x128x1024xf32>
    %cst_55 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %248 = stablehlo.broadcast_in_dim %cst_55, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %249 = stablehlo.multiply %248, %246 : tensor<16x128x1024xf32>
    %250 = stablehlo.multiply %249, %166 : tensor<16x128x1024xf32>
    %251 = stablehlo.add %247, %250 : tensor<16x128x1024xf32>
    %252 = stablehlo.dot_general %251, %160, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<16x128x256xf32>) -> tensor<1024x256xf32>
    %253 = stablehlo.transpose %252, dims = [1, 0] : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %254 = stablehlo.dot_general %251, %arg15, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<256x1024xf32>) -> tensor<16x128x256xf32>
    %255 = stablehlo.multiply %157, %254 : tensor<16x128x256xf32>
    %cst_56 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %256 = stablehlo.reduce(%255 init: %cst_56) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<256xf32>
    %257 = stablehlo.reshape %256 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %258 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %259 = stablehlo.multiply %254, %258 : tensor<16x128x256xf32>
    %cst_57 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %260 = stablehlo.reduce(%257 init: %cst_57) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x256xf32>, tensor<f32>) -> tensor<256xf32>
    %261 = stablehlo.multiply %144, %259 : tensor<16x128x256xf32>
    %cst_58 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %262 = stablehlo.reduce(%261 init: %cst_58) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %263 = stablehlo.reshape %262 : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %264 = stablehlo.broadcast_in_dim %152, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %265 = stablehlo.multiply %259, %264 : tensor<16x128x256xf32>
    %266 = stablehlo.add %234, %265 : tensor<16x128x256xf32>
    %267 = stablehlo.multiply %263, %155 : tensor<16x128x1xf32>
    %cst_59 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %268 = stablehlo.broadcast_in_dim %cst_59, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %269 = stablehlo.divide %267, %268 : tensor<16x128x1xf32>
    %cst_60 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %270 = stablehlo.reduce(%269 init: %cst_60) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<16x128xf32>
    %271 = stablehlo.broadcast_in_dim %270, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x256xf32>
    %272 = stablehlo.multiply %144, %271 : tensor<16x128x256xf32>
    %273 = stablehlo.add %266, %272 : tensor<16x128x256xf32>
    %274 = stablehlo.multiply %271, %144 : tensor<16x128x256xf32>
    %275 = stablehlo.add %273, %274 : tensor<16x128x256xf32>
    %276 = stablehlo.dot_general %275, %142, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<16x128x8x32xf32>) -> tensor<256x8x32xf32>
    %277 = stablehlo.transpose %276, dims = [1, 2, 0] : (tensor<256x8x32xf32>) -> tensor<8x32x256xf32>
    %278 = stablehlo.dot_general %275, %arg13, contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<8x32x256xf32>) -> tensor<16x128x8x32xf32>
    %279 = stablehlo.transpose %278, dims = [0, 2, 3, 1] : (tensor<16x128x8x32xf32>) -> tensor<16x8x32x128xf32>
    %280 = stablehlo.dot_general %279, %114, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x8x32x128xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x128xf32>
    %281 = stablehlo.dot_general %279, %137, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x8x32x128xf32>, tensor<16x8x128x128xf32>) -> tensor<16x8x32x128xf32>
    %282 = stablehlo.transpose %281, dims = [0, 3, 1, 2] : (tensor<16x8x32x128xf32>) -> tensor<16x128x8x32xf32>
    %283 = stablehlo.broadcast_in_dim %140, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %284 = stablehlo.multiply %280, %283 : tensor<16x8x128x128xf32>
    %285 = stablehlo.multiply %284, %133 : tensor<16x8x128x128xf32>
    %cst_61 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %286 = stablehlo.reduce(%285 init: %cst_61) applies stablehlo.add across dimensions = [3] : (tensor<16x8x128x128xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %287 = stablehlo.reshape %286 : (tensor<16x8x128xf32>) -> tensor<16x8x128x1xf32>
    %288 = stablehlo.negate %287 : tensor<16x8x128x1xf32>
    %289 = stablehlo.broadcast_in_dim %135, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %290 = stablehlo.divide %280, %289 : tensor<16x8x128x128xf32>
    %cst_62 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %291 = stablehlo.reduce(%288 init: %cst_62) applies stablehlo.add across dimensions = [3] : (tensor<16x8x128x1xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %292 = stablehlo.broadcast_in_dim %291, dims = [0, 1, 2] : (tensor<16x8x128xf32>) -> tensor<16x8x128x128xf32>
    %293 = stablehlo.add %290, %292 : tensor<16x8x128x128xf32>
    %294 = stablehlo.multiply %293, %133 : tensor<16x8x128x128xf32>
    %295 = call @_where_2(%126#1, %294) : (tensor<16x8x128x128xi1>, tensor<16x8x128x128xf32>) -> tensor<16x8x128x128xf32>
    %296 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<f32>) -> tensor<16x8x128x128xf32>
    %297 = stablehlo.divide %295, %296 : tensor<16x8x128x128xf32>
    %298 = stablehlo.dot_general %297, %112, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8x128x128xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x32xf32>
    %299 = stablehlo.transpose %298, dims = [0, 2, 1, 3] : (tensor<16x8x128x32xf32>) -> tensor<16x128x8x32xf32>
    %300 = stablehlo.dot_general %297, %113, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8x128x128xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x32xf32>
    %301 = stablehlo.transpose %300, dims = [0, 2, 1, 3] : (tensor<16x8x128x32xf32>) -> tensor<16x128x8x32xf32>
    %302 = stablehlo.dot_general %282, %111, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x256xf32>) -> tensor<8x32x256xf32>
    %303 = stablehlo.transpose %302, dims = [2, 0, 1] : (tensor<8x32x256xf32>) -> tensor<256x8x32xf32>
    %304 = stablehlo.dot_general %282, %arg16, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<256x8x32xf32>) -> tensor<16x128x256xf32>
    %305 = stablehlo.dot_general %299, %111, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x256xf32>) -> tensor<8x32x256xf32>
    %306 = stablehlo.transpose %305, dims = [2, 0, 1] : (tensor<8x32x256xf32>) -> tensor<256x8x32xf32>
    %307 = stablehlo.dot_general %299, %arg10, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<256x8x32xf32>) -> tensor<16x128x256xf32>
    %308 = stablehlo.add %304, %307 : tensor<16x128x256xf32>
    %309 = stablehlo.dot_general %301, %111, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x256xf32>) -> tensor<8x32x256xf32>
    %310 = stablehlo.transpose %309, dims = [2, 0, 1] : (tensor<8x32x256xf32>) -> tensor<256x8x32xf32>
    %311 = stablehlo.dot_general %301, %arg14, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<256x8x32xf32>) -> tensor<16x128x256xf32>
    %312 = stablehlo.add %308, %311 : tensor<16x128x256xf32>
    %313 = stablehlo.multiply %108, %312 : tensor<16x128x256xf32>
    %cst_63 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %314 = stablehlo.reduce(%313 init: %cst_63) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<256xf32>
    %315 = stablehlo.reshape %314 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %316 = stablehlo.broadcast_in_dim %109, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %317 = stablehlo.multiply %312, %316 : tensor<16x128x256xf32>
    %cst_64 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %318 = stablehlo.reduce(%315 init: %cst_64) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x256xf32>, tensor<f32>) -> tensor<256xf32>
    %319 = stablehlo.multiply %95, %317 : tensor<16x128x256xf32>
    %cst_65 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %320 = stablehlo.reduce(%319 init: %cst_65) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %321 = stablehlo.reshape %320 : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %322 = stablehlo.broadcast_in_dim %103, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %323 = stablehlo.multiply %317, %322 : tensor<16x128x256xf32>
    %324 = stablehlo.add %275, %323 : tensor<16x128x256xf32>
    %325 = stablehlo.multiply %321, %106 : tensor<16x128x1xf32>
    %cst_66 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %326 = stablehlo.broadcast_in_dim %cst_66, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %327 = stablehlo.divide %325, %326 : tensor<16x128x1xf32>
    %cst_67 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %328 = stablehlo.reduce(%327 init: %cst_67) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<16x128xf32>
    %329 = stablehlo.broadcast_in_dim %328, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x256xf32>
    %330 = stablehlo.multiply %95, %329 : tensor<16x128x256xf32>
    %331 = stablehlo.add %324, %330 : tensor<16x128x256xf32>
    %332 = stablehlo.multiply %329, %95 : tensor<16x128x256xf32>
    %333 = stablehlo.add %331, %332 : tensor<16x128x256xf32>
    %334 = stablehlo.dot_general %333, %93, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<16x128x1024xf32>) -> tensor<256x1024xf32>
    %335 = stablehlo.transpose %334, dims = [1, 0] : (tensor<256x1024xf32>) -> tensor<1024x256xf32>
    %336 = stablehlo.dot_general %333, %arg1, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<1024x256xf32>) -> tensor<16x128x1024xf32>
    %337 = stablehlo.multiply %75, %336 : tensor<16x128x1024xf32>
    %338 = stablehlo.multiply %336, %92 : tensor<16x128x1024xf32>
    %cst_68 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %339 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %340 = stablehlo.multiply %339, %337 : tensor<16x128x1024xf32>
    %341 = stablehlo.multiply %340, %88 : tensor<16x128x1024xf32>
    %342 = stablehlo.multiply %341, %86 : tensor<16x128x1024xf32>
    %343 = stablehlo.add %341, %342 : tensor<16x128x1024xf32>
    %cst_69 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %344 = stablehlo.broadcast_in_dim %cst_69, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %345 = stablehlo.multiply %344, %343 : tensor<16x128x1024xf32>
    %346 = stablehlo.add %338, %345 : tensor<16x128x1024xf32>
    %cst_70 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %347 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %348 = stablehlo.multiply %347, %345 : tensor<16x128x1024xf32>
    %349 = stablehlo.multiply %348, %80 : tensor<16x128x1024xf32>
    %350 = stablehlo.add %346, %349 : tensor<16x128x1024xf32>
    %351 = stablehlo.dot_general %350, %74, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<16x128x256xf32>) -> tensor<1024x256xf32>
    %352 = stablehlo.transpose %351, dims = [1, 0] : (tensor<1024x256xf32>) -> tensor<256x1024xf32>
    %353 = stablehlo.dot_general %350, %arg7, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x1024xf32>, tensor<256x1024xf32>) -> tensor<16x128x256xf32>
    %354 = stablehlo.multiply %71, %353 : tensor<16x128x256xf32>
    %cst_71 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %355 = stablehlo.reduce(%354 init: %cst_71) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<256xf32>
    %356 = stablehlo.reshape %355 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %357 = stablehlo.broadcast_in_dim %72, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %358 = stablehlo.multiply %353, %357 : tensor<16x128x256xf32>
    %cst_72 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %359 = stablehlo.reduce(%356 init: %cst_72) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x256xf32>, tensor<f32>) -> tensor<256xf32>
    %360 = stablehlo.multiply %58, %358 : tensor<16x128x256xf32>
    %cst_73 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %361 = stablehlo.reduce(%360 init: %cst_73) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %362 = stablehlo.reshape %361 : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %363 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %364 = stablehlo.multiply %358, %363 : tensor<16x128x256xf32>
    %365 = stablehlo.add %333, %364 : tensor<16x128x256xf32>
    %366 = stablehlo.multiply %362, %69 : tensor<16x128x1xf32>
    %cst_74 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %367 = stablehlo.broadcast_in_dim %cst_74, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %368 = stablehlo.divide %366, %367 : tensor<16x128x1xf32>
    %cst_75 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %369 = stablehlo.reduce(%368 init: %cst_75) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<16x128xf32>
    %370 = stablehlo.broadcast_in_dim %369, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x256xf32>
    %371 = stablehlo.multiply %58, %370 : tensor<16x128x256xf32>
    %372 = stablehlo.add %365, %371 : tensor<16x128x256xf32>
    %373 = stablehlo.multiply %370, %58 : tensor<16x128x256xf32>
    %374 = stablehlo.add %372, %373 : tensor<16x128x256xf32>
    %375 = stablehlo.dot_general %374, %56, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<16x128x8x32xf32>) -> tensor<256x8x32xf32>
    %376 = stablehlo.transpose %375, dims = [1, 2, 0] : (tensor<256x8x32xf32>) -> tensor<8x32x256xf32>
    %377 = stablehlo.dot_general %374, %arg5, contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x256xf32>, tensor<8x32x256xf32>) -> tensor<16x128x8x32xf32>
    %378 = stablehlo.transpose %377, dims = [0, 2, 3, 1] : (tensor<16x128x8x32xf32>) -> tensor<16x8x32x128xf32>
    %379 = stablehlo.dot_general %378, %28, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<16x8x32x128xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x128xf32>
    %380 = stablehlo.dot_general %378, %51, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<16x8x32x128xf32>, tensor<16x8x128x128xf32>) -> tensor<16x8x32x128xf32>
    %381 = stablehlo.transpose %380, dims = [0, 3, 1, 2] : (tensor<16x8x32x128xf32>) -> tensor<16x128x8x32xf32>
    %382 = stablehlo.broadcast_in_dim %54, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %383 = stablehlo.multiply %379, %382 : tensor<16x8x128x128xf32>
    %384 = stablehlo.multiply %383, %47 : tensor<16x8x128x128xf32>
    %cst_76 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %385 = stablehlo.reduce(%384 init: %cst_76) applies stablehlo.add across dimensions = [3] : (tensor<16x8x128x128xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %386 = stablehlo.reshape %385 : (tensor<16x8x128xf32>) -> tensor<16x8x128x1xf32>
    %387 = stablehlo.negate %386 : tensor<16x8x128x1xf32>
    %388 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<16x8x128x1xf32>) -> tensor<16x8x128x128xf32>
    %389 = stablehlo.divide %379, %388 : tensor<16x8x128x128xf32>
    %cst_77 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %390 = stablehlo.reduce(%387 init: %cst_77) applies stablehlo.add across dimensions = [3] : (tensor<16x8x128x1xf32>, tensor<f32>) -> tensor<16x8x128xf32>
    %391 = stablehlo.broadcast_in_dim %390, dims = [0, 1, 2] : (tensor<16x8x128xf32>) -> tensor<16x8x128x128xf32>
    %392 = stablehlo.add %389, %391 : tensor<16x8x128x128xf32>
    %393 = stablehlo.multiply %392, %47 : tensor<16x8x128x128xf32>
    %394 = call @_where_2(%40#1, %393) : (tensor<16x8x128x128xi1>, tensor<16x8x128x128xf32>) -> tensor<16x8x128x128xf32>
    %395 = stablehlo.broadcast_in_dim %31, dims = [] : (tensor<f32>) -> tensor<16x8x128x128xf32>
    %396 = stablehlo.divide %394, %395 : tensor<16x8x128x128xf32>
    %397 = stablehlo.dot_general %396, %26, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8x128x128xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x32xf32>
    %398 = stablehlo.transpose %397, dims = [0, 2, 1, 3] : (tensor<16x8x128x32xf32>) -> tensor<16x128x8x32xf32>
    %399 = stablehlo.dot_general %396, %27, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x8x128x128xf32>, tensor<16x128x8x32xf32>) -> tensor<16x8x128x32xf32>
    %400 = stablehlo.transpose %399, dims = [0, 2, 1, 3] : (tensor<16x8x128x32xf32>) -> tensor<16x128x8x32xf32>
    %401 = stablehlo.dot_general %381, %25, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x256xf32>) -> tensor<8x32x256xf32>
    %402 = stablehlo.transpose %401, dims = [2, 0, 1] : (tensor<8x32x256xf32>) -> tensor<256x8x32xf32>
    %403 = stablehlo.dot_general %381, %arg8, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<256x8x32xf32>) -> tensor<16x128x256xf32>
    %404 = stablehlo.dot_general %398, %25, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x256xf32>) -> tensor<8x32x256xf32>
    %405 = stablehlo.transpose %404, dims = [2, 0, 1] : (tensor<8x32x256xf32>) -> tensor<256x8x32xf32>
    %406 = stablehlo.dot_general %398, %arg2, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<256x8x32xf32>) -> tensor<16x128x256xf32>
    %407 = stablehlo.add %403, %406 : tensor<16x128x256xf32>
    %408 = stablehlo.dot_general %400, %25, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<16x128x256xf32>) -> tensor<8x32x256xf32>
    %409 = stablehlo.transpose %408, dims = [2, 0, 1] : (tensor<8x32x256xf32>) -> tensor<256x8x32xf32>
    %410 = stablehlo.dot_general %400, %arg6, contracting_dims = [2, 3] x [1, 2], precision = [DEFAULT, DEFAULT] : (tensor<16x128x8x32xf32>, tensor<256x8x32xf32>) -> tensor<16x128x256xf32>
    %411 = stablehlo.add %407, %410 : tensor<16x128x256xf32>
    %412 = stablehlo.multiply %22, %411 : tensor<16x128x256xf32>
    %cst_78 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %413 = stablehlo.reduce(%412 init: %cst_78) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<256xf32>
    %414 = stablehlo.reshape %413 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %415 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<16x128x256xf32>
    %416 = stablehlo.multiply %411, %415 : tensor<16x128x256xf32>
    %cst_79 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %417 = stablehlo.reduce(%414 init: %cst_79) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x256xf32>, tensor<f32>) -> tensor<256xf32>
    %418 = stablehlo.multiply %9, %416 : tensor<16x128x256xf32>
    %cst_80 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %419 = stablehlo.reduce(%418 init: %cst_80) applies stablehlo.add across dimensions = [2] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<16x128xf32>
    %420 = stablehlo.reshape %419 : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %421 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x256xf32>
    %422 = stablehlo.multiply %416, %421 : tensor<16x128x256xf32>
    %423 = stablehlo.add %374, %422 : tensor<16x128x256xf32>
    %424 = stablehlo.multiply %420, %20 : tensor<16x128x1xf32>
    %cst_81 = stablehlo.constant dense<2.560000e+02> : tensor<f32>
    %425 = stablehlo.broadcast_in_dim %cst_81, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %426 = stablehlo.divide %424, %425 : tensor<16x128x1xf32>
    %cst_82 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %427 = stablehlo.reduce(%426 init: %cst_82) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<16x128xf32>
    %428 = stablehlo.broadcast_in_dim %427, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x256xf32>
    %429 = stablehlo.multiply %9, %428 : tensor<16x128x256xf32>
    %430 = stablehlo.add %423, %429 : tensor<16x128x256xf32>
    %431 = stablehlo.multiply %428, %9 : tensor<16x128x256xf32>
    %432 = stablehlo.add %430, %431 : tensor<16x128x256xf32>
    %cst_83 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %433 = stablehlo.reduce(%432 init: %cst_83) applies stablehlo.add across dimensions = [0] : (tensor<16x128x256xf32>, tensor<f32>) -> tensor<128x256xf32>
    %434 = stablehlo.reshape %433 : (tensor<128x256xf32>) -> tensor<1x128x256xf32>
    %cst_84 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %435 = stablehlo.reduce(%434 init: %cst_84) applies stablehlo.add across dimensions = [0] : (tensor<1x128x256xf32>, tensor<f32>) -> tensor<128x256xf32>
    %cst_85 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %436 = stablehlo.broadcast_in_dim %cst_85, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %437 = "stablehlo.scatter"(%436, %5, %432) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg60: tensor<f32>, %arg61: tensor<f32>):
      %789 = stablehlo.add %arg60, %arg61 : tensor<f32>
      stablehlo.return %789 : tensor<f32>
    }) : (tensor<1024x256xf32>, tensor<16x128x1xi32>, tensor<16x128x256xf32>) -> tensor<1024x256xf32>
    %438 = stablehlo.add %214, %437 : tensor<1024x256xf32>
    %cst_86 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %439 = stablehlo.broadcast_in_dim %cst_86, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %440 = stablehlo.multiply %439, %arg19 : tensor<1024x256xf32>
    %cst_87 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %441 = stablehlo.broadcast_in_dim %cst_87, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %442 = stablehlo.multiply %441, %438 : tensor<1024x256xf32>
    %443 = stablehlo.add %440, %442 : tensor<1024x256xf32>
    %cst_88 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %444 = stablehlo.broadcast_in_dim %cst_88, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %445 = stablehlo.multiply %444, %arg20 : tensor<1024x256xf32>
    %cst_89 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %446 = stablehlo.broadcast_in_dim %cst_89, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %447 = stablehlo.multiply %446, %335 : tensor<1024x256xf32>
    %448 = stablehlo.add %445, %447 : tensor<1024x256xf32>
    %cst_90 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %449 = stablehlo.broadcast_in_dim %cst_90, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %450 = stablehlo.multiply %449, %arg21 : tensor<256x8x32xf32>
    %cst_91 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %451 = stablehlo.broadcast_in_dim %cst_91, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %452 = stablehlo.multiply %451, %405 : tensor<256x8x32xf32>
    %453 = stablehlo.add %450, %452 : tensor<256x8x32xf32>
    %cst_92 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %454 = stablehlo.broadcast_in_dim %cst_92, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %455 = stablehlo.multiply %454, %arg22 : tensor<256xf32>
    %cst_93 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %456 = stablehlo.broadcast_in_dim %cst_93, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %457 = stablehlo.multiply %456, %417 : tensor<256xf32>
    %458 = stablehlo.add %455, %457 : tensor<256xf32>
    %cst_94 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %459 = stablehlo.broadcast_in_dim %cst_94, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %460 = stablehlo.multiply %459, %arg23 : tensor<256xf32>
    %cst_95 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %461 = stablehlo.broadcast_in_dim %cst_95, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %462 = stablehlo.multiply %461, %359 : tensor<256xf32>
    %463 = stablehlo.add %460, %462 : tensor<256xf32>
    %cst_96 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %464 = stablehlo.broadcast_in_dim %cst_96, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %465 = stablehlo.multiply %464, %arg24 : tensor<8x32x256xf32>
    %cst_97 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %466 = stablehlo.broadcast_in_dim %cst_97, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %467 = stablehlo.multiply %466, %376 : tensor<8x32x256xf32>
    %468 = stablehlo.add %465, %467 : tensor<8x32x256xf32>
    %cst_98 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %469 = stablehlo.broadcast_in_dim %cst_98, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %470 = stablehlo.multiply %469, %arg25 : tensor<256x8x32xf32>
    %cst_99 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %471 = stablehlo.broadcast_in_dim %cst_99, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %472 = stablehlo.multiply %471, %409 : tensor<256x8x32xf32>
    %473 = stablehlo.add %470, %472 : tensor<256x8x32xf32>
    %cst_100 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %474 = stablehlo.broadcast_in_dim %cst_100, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %475 = stablehlo.multiply %474, %arg26 : tensor<256x1024xf32>
    %cst_101 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %476 = stablehlo.broadcast_in_dim %cst_101, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %477 = stablehlo.multiply %476, %352 : tensor<256x1024xf32>
    %478 = stablehlo.add %475, %477 : tensor<256x1024xf32>
    %cst_102 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %479 = stablehlo.broadcast_in_dim %cst_102, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %480 = stablehlo.multiply %479, %arg27 : tensor<256x8x32xf32>
    %cst_103 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %481 = stablehlo.broadcast_in_dim %cst_103, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %482 = stablehlo.multiply %481, %402 : tensor<256x8x32xf32>
    %483 = stablehlo.add %480, %482 : tensor<256x8x32xf32>
    %cst_104 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %484 = stablehlo.broadcast_in_dim %cst_104, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %485 = stablehlo.multiply %484, %arg28 : tensor<1024x256xf32>
    %cst_105 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %486 = stablehlo.broadcast_in_dim %cst_105, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %487 = stablehlo.multiply %486, %236 : tensor<1024x256xf32>
    %488 = stablehlo.add %485, %487 : tensor<1024x256xf32>
    %cst_106 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %489 = stablehlo.broadcast_in_dim %cst_106, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %490 = stablehlo.multiply %489, %arg29 : tensor<256x8x32xf32>
    %cst_107 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %491 = stablehlo.broadcast_in_dim %cst_107, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %492 = stablehlo.multiply %491, %306 : tensor<256x8x32xf32>
    %493 = stablehlo.add %490, %492 : tensor<256x8x32xf32>
    %cst_108 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %494 = stablehlo.broadcast_in_dim %cst_108, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %495 = stablehlo.multiply %494, %arg30 : tensor<256xf32>
    %cst_109 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %496 = stablehlo.broadcast_in_dim %cst_109, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %497 = stablehlo.multiply %496, %318 : tensor<256xf32>
    %498 = stablehlo.add %495, %497 : tensor<256xf32>
    %cst_110 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %499 = stablehlo.broadcast_in_dim %cst_110, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %500 = stablehlo.multiply %499, %arg31 : tensor<256xf32>
    %cst_111 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %501 = stablehlo.broadcast_in_dim %cst_111, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %502 = stablehlo.multiply %501, %260 : tensor<256xf32>
    %503 = stablehlo.add %500, %502 : tensor<256xf32>
    %cst_112 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %504 = stablehlo.broadcast_in_dim %cst_112, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %505 = stablehlo.multiply %504, %arg32 : tensor<8x32x256xf32>
    %cst_113 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %506 = stablehlo.broadcast_in_dim %cst_113, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %507 = stablehlo.multiply %506, %277 : tensor<8x32x256xf32>
    %508 = stablehlo.add %505, %507 : tensor<8x32x256xf32>
    %cst_114 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %509 = stablehlo.broadcast_in_dim %cst_114, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %510 = stablehlo.multiply %509, %arg33 : tensor<256x8x32xf32>
    %cst_115 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %511 = stablehlo.broadcast_in_dim %cst_115, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %512 = stablehlo.multiply %511, %310 : tensor<256x8x32xf32>
    %513 = stablehlo.add %510, %512 : tensor<256x8x32xf32>
    %cst_116 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %514 = stablehlo.broadcast_in_dim %cst_116, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %515 = stablehlo.multiply %514, %arg34 : tensor<256x1024xf32>
    %cst_117 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %516 = stablehlo.broadcast_in_dim %cst_117, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %517 = stablehlo.multiply %516, %253 : tensor<256x1024xf32>
    %518 = stablehlo.add %515, %517 : tensor<256x1024xf32>
    %cst_118 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %519 = stablehlo.broadcast_in_dim %cst_118, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %520 = stablehlo.multiply %519, %arg35 : tensor<256x8x32xf32>
    %cst_119 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %521 = stablehlo.broadcast_in_dim %cst_119, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %522 = stablehlo.multiply %521, %303 : tensor<256x8x32xf32>
    %523 = stablehlo.add %520, %522 : tensor<256x8x32xf32>
    %cst_120 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %524 = stablehlo.broadcast_in_dim %cst_120, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %525 = stablehlo.multiply %524, %arg36 : tensor<256xf32>
    %cst_121 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %526 = stablehlo.broadcast_in_dim %cst_121, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %527 = stablehlo.multiply %526, %220 : tensor<256xf32>
    %528 = stablehlo.add %525, %527 : tensor<256xf32>
    %cst_122 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %529 = stablehlo.broadcast_in_dim %cst_122, dims = [] : (tensor<f32>) -> tensor<128x256xf32>
    %530 = stablehlo.multiply %529, %arg37 : tensor<128x256xf32>
    %cst_123 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %531 = stablehlo.broadcast_in_dim %cst_123, dims = [] : (tensor<f32>) -> tensor<128x256xf32>
    %532 = stablehlo.multiply %531, %435 : tensor<128x256xf32>
    %533 = stablehlo.add %530, %532 : tensor<128x256xf32>
    %cst_124 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %534 = stablehlo.broadcast_in_dim %cst_124, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %535 = stablehlo.multiply %534, %arg38 : tensor<1024x256xf32>
    %cst_125 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %536 = stablehlo.broadcast_in_dim %cst_125, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %537 = stablehlo.multiply %536, %438 : tensor<1024x256xf32>
    %538 = stablehlo.multiply %537, %438 : tensor<1024x256xf32>
    %539 = stablehlo.add %535, %538 : tensor<1024x256xf32>
    %cst_126 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %540 = stablehlo.broadcast_in_dim %cst_126, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %541 = stablehlo.multiply %540, %arg39 : tensor<1024x256xf32>
    %cst_127 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %542 = stablehlo.broadcast_in_dim %cst_127, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %543 = stablehlo.multiply %542, %335 : tensor<1024x256xf32>
    %544 = stablehlo.multiply %543, %335 : tensor<1024x256xf32>
    %545 = stablehlo.add %541, %544 : tensor<1024x256xf32>
    %cst_128 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %546 = stablehlo.broadcast_in_dim %cst_128, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %547 = stablehlo.multiply %546, %arg40 : tensor<256x8x32xf32>
    %cst_129 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %548 = stablehlo.broadcast_in_dim %cst_129, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %549 = stablehlo.multiply %548, %405 : tensor<256x8x32xf32>
    %550 = stablehlo.multiply %549, %405 : tensor<256x8x32xf32>
    %551 = stablehlo.add %547, %550 : tensor<256x8x32xf32>
    %cst_130 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %552 = stablehlo.broadcast_in_dim %cst_130, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %553 = stablehlo.multiply %552, %arg41 : tensor<256xf32>
    %cst_131 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %554 = stablehlo.broadcast_in_dim %cst_131, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %555 = stablehlo.multiply %554, %417 : tensor<256xf32>
    %556 = stablehlo.multiply %555, %417 : tensor<256xf32>
    %557 = stablehlo.add %553, %556 : tensor<256xf32>
    %cst_132 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %558 = stablehlo.broadcast_in_dim %cst_132, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %559 = stablehlo.multiply %558, %arg42 : tensor<256xf32>
    %cst_133 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %560 = stablehlo.broadcast_in_dim %cst_133, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %561 = stablehlo.multiply %560, %359 : tensor<256xf32>
    %562 = stablehlo.multiply %561, %359 : tensor<256xf32>
    %563 = stablehlo.add %559, %562 : tensor<256xf32>
    %cst_134 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %564 = stablehlo.broadcast_in_dim %cst_134, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %565 = stablehlo.multiply %564, %arg43 : tensor<8x32x256xf32>
    %cst_135 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %566 = stablehlo.broadcast_in_dim %cst_135, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %567 = stablehlo.multiply %566, %376 : tensor<8x32x256xf32>
    %568 = stablehlo.multiply %567, %376 : tensor<8x32x256xf32>
    %569 = stablehlo.add %565, %568 : tensor<8x32x256xf32>
    %cst_136 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %570 = stablehlo.broadcast_in_dim %cst_136, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %571 = stablehlo.multiply %570, %arg44 : tensor<256x8x32xf32>
    %cst_137 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %572 = stablehlo.broadcast_in_dim %cst_137, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %573 = stablehlo.multiply %572, %409 : tensor<256x8x32xf32>
    %574 = stablehlo.multiply %573, %409 : tensor<256x8x32xf32>
    %575 = stablehlo.add %571, %574 : tensor<256x8x32xf32>
    %cst_138 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %576 = stablehlo.broadcast_in_dim %cst_138, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %577 = stablehlo.multiply %576, %arg45 : tensor<256x1024xf32>
    %cst_139 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %578 = stablehlo.broadcast_in_dim %cst_139, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %579 = stablehlo.multiply %578, %352 : tensor<256x1024xf32>
    %580 = stablehlo.multiply %579, %352 : tensor<256x1024xf32>
    %581 = stablehlo.add %577, %580 : tensor<256x1024xf32>
    %cst_140 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %582 = stablehlo.broadcast_in_dim %cst_140, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %583 = stablehlo.multiply %582, %arg46 : tensor<256x8x32xf32>
    %cst_141 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %584 = stablehlo.broadcast_in_dim %cst_141, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %585 = stablehlo.multiply %584, %402 : tensor<256x8x32xf32>
    %586 = stablehlo.multiply %585, %402 : tensor<256x8x32xf32>
    %587 = stablehlo.add %583, %586 : tensor<256x8x32xf32>
    %cst_142 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %588 = stablehlo.broadcast_in_dim %cst_142, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %589 = stablehlo.multiply %588, %arg47 : tensor<1024x256xf32>
    %cst_143 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %590 = stablehlo.broadcast_in_dim %cst_143, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %591 = stablehlo.multiply %590, %236 : tensor<1024x256xf32>
    %592 = stablehlo.multiply %591, %236 : tensor<1024x256xf32>
    %593 = stablehlo.add %589, %592 : tensor<1024x256xf32>
    %cst_144 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %594 = stablehlo.broadcast_in_dim %cst_144, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %595 = stablehlo.multiply %594, %arg48 : tensor<256x8x32xf32>
    %cst_145 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %596 = stablehlo.broadcast_in_dim %cst_145, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %597 = stablehlo.multiply %596, %306 : tensor<256x8x32xf32>
    %598 = stablehlo.multiply %597, %306 : tensor<256x8x32xf32>
    %599 = stablehlo.add %595, %598 : tensor<256x8x32xf32>
    %cst_146 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %600 = stablehlo.broadcast_in_dim %cst_146, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %601 = stablehlo.multiply %600, %arg49 : tensor<256xf32>
    %cst_147 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %602 = stablehlo.broadcast_in_dim %cst_147, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %603 = stablehlo.multiply %602, %318 : tensor<256xf32>
    %604 = stablehlo.multiply %603, %318 : tensor<256xf32>
    %605 = stablehlo.add %601, %604 : tensor<256xf32>
    %cst_148 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %606 = stablehlo.broadcast_in_dim %cst_148, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %607 = stablehlo.multiply %606, %arg50 : tensor<256xf32>
    %cst_149 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %608 = stablehlo.broadcast_in_dim %cst_149, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %609 = stablehlo.multiply %608, %260 : tensor<256xf32>
    %610 = stablehlo.multiply %609, %260 : tensor<256xf32>
    %611 = stablehlo.add %607, %610 : tensor<256xf32>
    %cst_150 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %612 = stablehlo.broadcast_in_dim %cst_150, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %613 = stablehlo.multiply %612, %arg51 : tensor<8x32x256xf32>
    %cst_151 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %614 = stablehlo.broadcast_in_dim %cst_151, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %615 = stablehlo.multiply %614, %277 : tensor<8x32x256xf32>
    %616 = stablehlo.multiply %615, %277 : tensor<8x32x256xf32>
    %617 = stablehlo.add %613, %616 : tensor<8x32x256xf32>
    %cst_152 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %618 = stablehlo.broadcast_in_dim %cst_152, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %619 = stablehlo.multiply %618, %arg52 : tensor<256x8x32xf32>
    %cst_153 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %620 = stablehlo.broadcast_in_dim %cst_153, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %621 = stablehlo.multiply %620, %310 : tensor<256x8x32xf32>
    %622 = stablehlo.multiply %621, %310 : tensor<256x8x32xf32>
    %623 = stablehlo.add %619, %622 : tensor<256x8x32xf32>
    %cst_154 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %624 = stablehlo.broadcast_in_dim %cst_154, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %625 = stablehlo.multiply %624, %arg53 : tensor<256x1024xf32>
    %cst_155 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %626 = stablehlo.broadcast_in_dim %cst_155, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %627 = stablehlo.multiply %626, %253 : tensor<256x1024xf32>
    %628 = stablehlo.multiply %627, %253 : tensor<256x1024xf32>
    %629 = stablehlo.add %625, %628 : tensor<256x1024xf32>
    %cst_156 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %630 = stablehlo.broadcast_in_dim %cst_156, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %631 = stablehlo.multiply %630, %arg54 : tensor<256x8x32xf32>
    %cst_157 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %632 = stablehlo.broadcast_in_dim %cst_157, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %633 = stablehlo.multiply %632, %303 : tensor<256x8x32xf32>
    %634 = stablehlo.multiply %633, %303 : tensor<256x8x32xf32>
    %635 = stablehlo.add %631, %634 : tensor<256x8x32xf32>
    %cst_158 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %636 = stablehlo.broadcast_in_dim %cst_158, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %637 = stablehlo.multiply %636, %arg55 : tensor<256xf32>
    %cst_159 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %638 = stablehlo.broadcast_in_dim %cst_159, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %639 = stablehlo.multiply %638, %220 : tensor<256xf32>
    %640 = stablehlo.multiply %639, %220 : tensor<256xf32>
    %641 = stablehlo.add %637, %640 : tensor<256xf32>
    %cst_160 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %642 = stablehlo.broadcast_in_dim %cst_160, dims = [] : (tensor<f32>) -> tensor<128x256xf32>
    %643 = stablehlo.multiply %642, %arg56 : tensor<128x256xf32>
    %cst_161 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %644 = stablehlo.broadcast_in_dim %cst_161, dims = [] : (tensor<f32>) -> tensor<128x256xf32>
    %645 = stablehlo.multiply %644, %435 : tensor<128x256xf32>
    %646 = stablehlo.multiply %645, %435 : tensor<128x256xf32>
    %647 = stablehlo.add %643, %646 : tensor<128x256xf32>
    %cst_162 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %648 = stablehlo.add %arg57, %cst_162 : tensor<f32>
    %cst_163 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
    %649 = stablehlo.power %cst_163, %648 : tensor<f32>
    %cst_164 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %650 = stablehlo.subtract %cst_164, %649 : tensor<f32>
    %651 = stablehlo.sqrt %650 : tensor<f32>
    %cst_165 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %652 = stablehlo.multiply %cst_165, %651 : tensor<f32>
    %cst_166 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %653 = stablehlo.power %cst_166, %648 : tensor<f32>
    %cst_167 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %654 = stablehlo.subtract %cst_167, %653 : tensor<f32>
    %655 = stablehlo.divide %652, %654 : tensor<f32>
    %656 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %657 = stablehlo.multiply %656, %443 : tensor<1024x256xf32>
    %658 = stablehlo.sqrt %539 : tensor<1024x256xf32>
    %cst_168 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %659 = stablehlo.broadcast_in_dim %cst_168, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %660 = stablehlo.add %658, %659 : tensor<1024x256xf32>
    %661 = stablehlo.divide %657, %660 : tensor<1024x256xf32>
    %662 = stablehlo.subtract %arg0, %661 : tensor<1024x256xf32>
    %663 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %664 = stablehlo.multiply %663, %448 : tensor<1024x256xf32>
    %665 = stablehlo.sqrt %545 : tensor<1024x256xf32>
    %cst_169 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %666 = stablehlo.broadcast_in_dim %cst_169, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %667 = stablehlo.add %665, %666 : tensor<1024x256xf32>
    %668 = stablehlo.divide %664, %667 : tensor<1024x256xf32>
    %669 = stablehlo.subtract %arg1, %668 : tensor<1024x256xf32>
    %670 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %671 = stablehlo.multiply %670, %453 : tensor<256x8x32xf32>
    %672 = stablehlo.sqrt %551 : tensor<256x8x32xf32>
    %cst_170 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %673 = stablehlo.broadcast_in_dim %cst_170, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %674 = stablehlo.add %672, %673 : tensor<256x8x32xf32>
    %675 = stablehlo.divide %671, %674 : tensor<256x8x32xf32>
    %676 = stablehlo.subtract %arg2, %675 : tensor<256x8x32xf32>
    %677 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %678 = stablehlo.multiply %677, %458 : tensor<256xf32>
    %679 = stablehlo.sqrt %557 : tensor<256xf32>
    %cst_171 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %680 = stablehlo.broadcast_in_dim %cst_171, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %681 = stablehlo.add %679, %680 : tensor<256xf32>
    %682 = stablehlo.divide %678, %681 : tensor<256xf32>
    %683 = stablehlo.subtract %arg3, %682 : tensor<256xf32>
    %684 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %685 = stablehlo.multiply %684, %463 : tensor<256xf32>
    %686 = stablehlo.sqrt %563 : tensor<256xf32>
    %cst_172 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %687 = stablehlo.broadcast_in_dim %cst_172, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %688 = stablehlo.add %686, %687 : tensor<256xf32>
    %689 = stablehlo.divide %685, %688 : tensor<256xf32>
    %690 = stablehlo.subtract %arg4, %689 : tensor<256xf32>
    %691 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %692 = stablehlo.multiply %691, %468 : tensor<8x32x256xf32>
    %693 = stablehlo.sqrt %569 : tensor<8x32x256xf32>
    %cst_173 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %694 = stablehlo.broadcast_in_dim %cst_173, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %695 = stablehlo.add %693, %694 : tensor<8x32x256xf32>
    %696 = stablehlo.divide %692, %695 : tensor<8x32x256xf32>
    %697 = stablehlo.subtract %arg5, %696 : tensor<8x32x256xf32>
    %698 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %699 = stablehlo.multiply %698, %473 : tensor<256x8x32xf32>
    %700 = stablehlo.sqrt %575 : tensor<256x8x32xf32>
    %cst_174 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %701 = stablehlo.broadcast_in_dim %cst_174, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %702 = stablehlo.add %700, %701 : tensor<256x8x32xf32>
    %703 = stablehlo.divide %699, %702 : tensor<256x8x32xf32>
    %704 = stablehlo.subtract %arg6, %703 : tensor<256x8x32xf32>
    %705 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %706 = stablehlo.multiply %705, %478 : tensor<256x1024xf32>
    %707 = stablehlo.sqrt %581 : tensor<256x1024xf32>
    %cst_175 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %708 = stablehlo.broadcast_in_dim %cst_175, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %709 = stablehlo.add %707, %708 : tensor<256x1024xf32>
    %710 = stablehlo.divide %706, %709 : tensor<256x1024xf32>
    %711 = stablehlo.subtract %arg7, %710 : tensor<256x1024xf32>
    %712 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %713 = stablehlo.multiply %712, %483 : tensor<256x8x32xf32>
    %714 = stablehlo.sqrt %587 : tensor<256x8x32xf32>
    %cst_176 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %715 = stablehlo.broadcast_in_dim %cst_176, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %716 = stablehlo.add %714, %715 : tensor<256x8x32xf32>
    %717 = stablehlo.divide %713, %716 : tensor<256x8x32xf32>
    %718 = stablehlo.subtract %arg8, %717 : tensor<256x8x32xf32>
    %719 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %720 = stablehlo.multiply %719, %488 : tensor<1024x256xf32>
    %721 = stablehlo.sqrt %593 : tensor<1024x256xf32>
    %cst_177 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %722 = stablehlo.broadcast_in_dim %cst_177, dims = [] : (tensor<f32>) -> tensor<1024x256xf32>
    %723 = stablehlo.add %721, %722 : tensor<1024x256xf32>
    %724 = stablehlo.divide %720, %723 : tensor<1024x256xf32>
    %725 = stablehlo.subtract %arg9, %724 : tensor<1024x256xf32>
    %726 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %727 = stablehlo.multiply %726, %493 : tensor<256x8x32xf32>
    %728 = stablehlo.sqrt %599 : tensor<256x8x32xf32>
    %cst_178 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %729 = stablehlo.broadcast_in_dim %cst_178, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %730 = stablehlo.add %728, %729 : tensor<256x8x32xf32>
    %731 = stablehlo.divide %727, %730 : tensor<256x8x32xf32>
    %732 = stablehlo.subtract %arg10, %731 : tensor<256x8x32xf32>
    %733 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %734 = stablehlo.multiply %733, %498 : tensor<256xf32>
    %735 = stablehlo.sqrt %605 : tensor<256xf32>
    %cst_179 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %736 = stablehlo.broadcast_in_dim %cst_179, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %737 = stablehlo.add %735, %736 : tensor<256xf32>
    %738 = stablehlo.divide %734, %737 : tensor<256xf32>
    %739 = stablehlo.subtract %arg11, %738 : tensor<256xf32>
    %740 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %741 = stablehlo.multiply %740, %503 : tensor<256xf32>
    %742 = stablehlo.sqrt %611 : tensor<256xf32>
    %cst_180 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %743 = stablehlo.broadcast_in_dim %cst_180, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %744 = stablehlo.add %742, %743 : tensor<256xf32>
    %745 = stablehlo.divide %741, %744 : tensor<256xf32>
    %746 = stablehlo.subtract %arg12, %745 : tensor<256xf32>
    %747 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %748 = stablehlo.multiply %747, %508 : tensor<8x32x256xf32>
    %749 = stablehlo.sqrt %617 : tensor<8x32x256xf32>
    %cst_181 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %750 = stablehlo.broadcast_in_dim %cst_181, dims = [] : (tensor<f32>) -> tensor<8x32x256xf32>
    %751 = stablehlo.add %749, %750 : tensor<8x32x256xf32>
    %752 = stablehlo.divide %748, %751 : tensor<8x32x256xf32>
    %753 = stablehlo.subtract %arg13, %752 : tensor<8x32x256xf32>
    %754 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %755 = stablehlo.multiply %754, %513 : tensor<256x8x32xf32>
    %756 = stablehlo.sqrt %623 : tensor<256x8x32xf32>
    %cst_182 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %757 = stablehlo.broadcast_in_dim %cst_182, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %758 = stablehlo.add %756, %757 : tensor<256x8x32xf32>
    %759 = stablehlo.divide %755, %758 : tensor<256x8x32xf32>
    %760 = stablehlo.subtract %arg14, %759 : tensor<256x8x32xf32>
    %761 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %762 = stablehlo.multiply %761, %518 : tensor<256x1024xf32>
    %763 = stablehlo.sqrt %629 : tensor<256x1024xf32>
    %cst_183 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %764 = stablehlo.broadcast_in_dim %cst_183, dims = [] : (tensor<f32>) -> tensor<256x1024xf32>
    %765 = stablehlo.add %763, %764 : tensor<256x1024xf32>
    %766 = stablehlo.divide %762, %765 : tensor<256x1024xf32>
    %767 = stablehlo.subtract %arg15, %766 : tensor<256x1024xf32>
    %768 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %769 = stablehlo.multiply %768, %523 : tensor<256x8x32xf32>
    %770 = stablehlo.sqrt %635 : tensor<256x8x32xf32>
    %cst_184 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %771 = stablehlo.broadcast_in_dim %cst_184, dims = [] : (tensor<f32>) -> tensor<256x8x32xf32>
    %772 = stablehlo.add %770, %771 : tensor<256x8x32xf32>
    %773 = stablehlo.divide %769, %772 : tensor<256x8x32xf32>
    %774 = stablehlo.subtract %arg16, %773 : tensor<256x8x32xf32>
    %775 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %776 = stablehlo.multiply %775, %528 : tensor<256xf32>
    %777 = stablehlo.sqrt %641 : tensor<256xf32>
    %cst_185 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %778 = stablehlo.broadcast_in_dim %cst_185, dims = [] : (tensor<f32>) -> tensor<256xf32>
    %779 = stablehlo.add %777, %778 : tensor<256xf32>
    %780 = stablehlo.divide %776, %779 : tensor<256xf32>
    %781 = stablehlo.subtract %arg17, %780 : tensor<256xf32>
    %782 = stablehlo.broadcast_in_dim %655, dims = [] : (tensor<f32>) -> tensor<128x256xf32>
    %783 = stablehlo.multiply %782, %533 : tensor<128x256xf32>
    %784 = stablehlo.sqrt %647 : tensor<128x256xf32>
    %cst_186 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %785 = stablehlo.broadcast_in_dim %cst_186, dims = [] : (tensor<f32>) -> tensor<128x256xf32>
    %786 = stablehlo.add %784, %785 : tensor<128x256xf32>
    %787 = stablehlo.divide %783, %786 : tensor<128x256xf32>
    %788 = stablehlo.subtract %arg18, %787 : tensor<128x256xf32>
    return %662, %669, %676, %683, %690, %697, %704, %711, %718, %725, %732, %739, %746, %753, %760, %767, %774, %781, %788, %443, %448, %453, %458, %463, %468, %473, %478, %483, %488, %493, %498, %503, %508, %513, %518, %523, %528, %533, %539, %545, %551, %557, %563, %569, %575, %581, %587, %593, %599, %605, %611, %617, %623, %629, %635, %641, %647, %648, %205 : tensor<1024x256xf32>, tensor<1024x256xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<8x32x256xf32>, tensor<256x8x32xf32>, tensor<256x1024xf32>, tensor<256x8x32xf32>, tensor<1024x256xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<8x32x256xf32>, tensor<256x8x32xf32>, tensor<256x1024xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<128x256xf32>, tensor<1024x256xf32>, tensor<1024x256xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<8x32x256xf32>, tensor<256x8x32xf32>, tensor<256x1024xf32>, tensor<256x8x32xf32>, tensor<1024x256xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<8x32x256xf32>, tensor<256x8x32xf32>, tensor<256x1024xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<128x256xf32>, tensor<1024x256xf32>, tensor<1024x256xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<8x32x256xf32>, tensor<256x8x32xf32>, tensor<256x1024xf32>, tensor<256x8x32xf32>, tensor<1024x256xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<8x32x256xf32>, tensor<256x8x32xf32>, tensor<256x1024xf32>, tensor<256x8x32xf32>, tensor<256xf32>, tensor<128x256xf32>, tensor<f32>, tensor<f32>
  }
  func.func private @_where(%arg0: tensor<128x128xi1>, %arg1: tensor<16x8x128x128xf32>, %arg2: tensor<f32>) -> (tensor<16x8x128x128xf32>, tensor<16x8x128x128xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<128x128xi1>) -> tensor<16x8x128x128xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x8x128x128xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<16x8x128x128xi1>, tensor<16x8x128x128xf32>
    return %3, %1 : tensor<16x8x128x128xf32>, tensor<16x8x128x128xi1>
  }
  func.func private @log_softmax(%arg0: tensor<16x128x1024xf32>) -> (tensor<16x128x1024xf32>, tensor<16x128x1024xf32>, tensor<16x128x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<16x128x1024xf32>, tensor<f32>) -> tensor<16x128xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x128xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<16x128xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x1024xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<16x128x1024xf32>
    %6 = stablehlo.exponential %5 : tensor<16x128x1024xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1024xf32>, tensor<f32>) -> tensor<16x128xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %9 = stablehlo.log %8 : tensor<16x128x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<16x128x1xf32>) -> tensor<16x128x1024xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<16x128x1024xf32>
    return %11, %6, %8 : tensor<16x128x1024xf32>, tensor<16x128x1024xf32>, tensor<16x128x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<16x128x1024xf32>, %arg1: tensor<16x128x1xi32>) -> (tensor<16x128x1xf32>, tensor<16x128x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x128x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<16x128x1xi32>, tensor<16x128x1xi32>) -> tensor<16x128x1xi1>
    %c_0 = stablehlo.constant dense<1024> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x128x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<16x128x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<16x128x1xi1>, tensor<16x128x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<16x128x1xi32>) -> tensor<16x128x1x1xi32>
    %c_1 = stablehlo.constant dense<1023> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<16x128x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<16x128x1x1xi32>, tensor<16x128x1x1xi32>) -> tensor<16x128x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<16x128x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<16x128x1x1xi32>, tensor<16x128x1x1xi32>) -> tensor<16x128x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<16x128x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<16x128x1x1xi1>, tensor<i1>) -> tensor<16x128x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<16x128x1024xf32>, tensor<16x128x1x1xi32>) -> tensor<16x128x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x128x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<16x128x1xi1>, tensor<16x128x1xf32>
    return %15, %5 : tensor<16x128x1xf32>, tensor<16x128x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<16x128x1x1xi32>, %arg1: tensor<16x128x1xf32>) -> tensor<16x128x1024xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x128x1024xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<16x128x1024xf32>, tensor<16x128x1x1xi32>, tensor<16x128x1xf32>) -> tensor<16x128x1024xf32>
    return %1 : tensor<16x128x1024xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<16x128x1024xf32>, %arg1: tensor<16x128x1xf32>, %arg2: tensor<16x128x1024xf32>) -> tensor<16x128x1024xf32> {
    %0 = stablehlo.negate %arg2 : tensor<16x128x1024xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1024xf32>, tensor<f32>) -> tensor<16x128xf32>
    %2 = stablehlo.reshape %1 : (tensor<16x128xf32>) -> tensor<16x128x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<16x128x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<16x128x1xf32>, tensor<f32>) -> tensor<16x128xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<16x128xf32>) -> tensor<16x128x1024xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<16x128x1024xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<16x128x1024xf32>
    return %7 : tensor<16x128x1024xf32>
  }
  func.func private @_where_2(%arg0: tensor<16x8x128x128xi1>, %arg1: tensor<16x8x128x128xf32>) -> tensor<16x8x128x128xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8x128x128xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<16x8x128x128xi1>, tensor<16x8x128x128xf32>
    return %1 : tensor<16x8x128x128xf32>
  }
}

