# frozen_string_literal: true

module Memprof
  # Interfaces of older tools, as adapters on what memprof has today. No other part of memprof names them, but
  # for what loads them.
  module Compat
    autoload :Chap, "#{__dir__}/compat/chap"
    autoload :MemoryProfilerReport, "#{__dir__}/compat/memory_profiler_report"
    autoload :Sheap, "#{__dir__}/compat/sheap"
    autoload :Uploader, "#{__dir__}/compat/uploader"
  end
end
