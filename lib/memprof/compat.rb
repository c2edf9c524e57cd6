# frozen_string_literal: true

module Memprof
  # Interfaces that programs and people know from older tools, as adapters on what memprof has today. The rest
  # of memprof doesn't know them.
  module Compat
    autoload :Chap, "#{__dir__}/compat/chap"
    autoload :MemoryProfilerReport, "#{__dir__}/compat/memory_profiler_report"
    autoload :Sheap, "#{__dir__}/compat/sheap"
    autoload :Uploader, "#{__dir__}/compat/uploader"
  end
end
