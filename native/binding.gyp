{
  "target_defaults": {
    "cflags!": ["-fno-exceptions"],
    "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
    "cflags": ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fvisibility=hidden"],
    "cflags_cc": ["-std=c++20", "-fexceptions"]
  },
  "targets": [
    {
      "target_name": "cudashm",
      "sources": [
        "src/addon.cc",
        "src/arguments.cc",
        "src/call_queue.cc",
        "src/completions.cc",
        "src/crc32c.cc",
        "src/device_context.cc",
        "src/device_memory.cc",
        "src/driver.cc",
        "src/driver_api.cc",
        "src/driver_wrap.cc",
        "src/file_lock.cc",
        "src/memory_wrap.cc",
        "src/process_end.cc",
        "src/process_stat.cc",
        "src/process_watch.cc",
        "src/process_watch_wrap.cc",
        "src/quiet_thread.cc",
        "src/shared_library.cc",
        "src/to_js.cc"
      ],
      "defines": [
        "NAPI_VERSION=8",
        "NODE_ADDON_API_DISABLE_DEPRECATED",
        "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"
      ],
      "dependencies": ["<!(node -p \"require('node-addon-api').targets\"):node_addon_api_except_all"],
      "libraries": ["-ldl", "-pthread"],
      "ldflags": ["-Wl,-z,nodelete"]
    },
    {
      "target_name": "emulated_driver",
      "type": "shared_library",
      "product_prefix": "lib",
      "product_name": "cuda",
      "product_extension": "so.1",
      "product_dir": "<(PRODUCT_DIR)/emulated",
      "sources": [
        "emulated/call.cc",
        "emulated/call_counters.cc",
        "emulated/call_log.cc",
        "emulated/context.cc",
        "emulated/copy.cc",
        "emulated/device.cc",
        "emulated/device_attributes.cc",
        "emulated/device_uuid.cc",
        "emulated/driver_state.cc",
        "emulated/environment.cc",
        "emulated/error_names.cc",
        "emulated/exporter_file.cc",
        "emulated/exports_context.cc",
        "emulated/exports_copy.cc",
        "emulated/exports_device.cc",
        "emulated/exports_driver.cc",
        "emulated/exports_ipc.cc",
        "emulated/exports_memory.cc",
        "emulated/exports_stream.cc",
        "emulated/fault_file.cc",
        "emulated/function_table.cc",
        "emulated/injections.cc",
        "emulated/ipc.cc",
        "emulated/ipc_handle.cc",
        "emulated/lifecycle.cc",
        "emulated/memory.cc",
        "emulated/observation.cc",
        "emulated/pointer_attributes.cc",
        "emulated/process_identity.cc",
        "emulated/ranges.cc",
        "emulated/reason.cc",
        "emulated/shared_segment.cc",
        "emulated/start.cc",
        "emulated/stream.cc",
        "emulated/symbol_hiding.cc"
      ],
      "ldflags": [
        "-Wl,-z,nodelete",
        "-Wl,-z,separate-code",
        "-Wl,--hash-style=both",
        "-Wl,-Bsymbolic",
        "-Wl,--version-script=<(module_root_dir)/emulated/exports.map"
      ],
      "libraries": ["-pthread"]
    }
  ]
}
