# frozen_string_literal: true

require "memprof"

# Loads the parts that methods of memprof otherwise load on their first call. A signal handler can't load
# files: a program's own handler that names classes such as `Memprof::Heap` needs this first.
#
#   require "memprof/everything"
#   trap("USR2") { puts Memprof::Heap.capture.leaks }
#
# By constant: a file that is being loaded by name would load itself again where it names its own constant.
load_parts = ->(namespace, *parts) { parts.each { |part| namespace.const_get(part) } }
load_parts.call(Memprof, :Census, :Core, :Dump, :Growth, :Heap, :Iseqs, :Memory, :Trace)
load_parts.call(Memprof::Compat, :MemoryProfilerReport)
load_parts.call(Memprof::Core, :BlockOrigins)
load_parts.call(Memprof::Report, :Json, :Markdown, :Overview, :Text)
load_parts.call(Memprof::Growth, :GrowthText, :Holders)
load_parts.call(Memprof::Memory, :Cluster, :MemoryText)
# Loading it starts a recording if MEMPROF_MALLOC is set, which only `require "memprof/malloc"` should do.
unless ENV.key?("MEMPROF_MALLOC") && Memprof.autoload?(:Malloc)
  load_parts.call(Memprof::Malloc, :InterpreterFunctions, :MallocText, :Recording, :Stacks)
  load_parts.call(Memprof::Malloc::Recording, :Comparison, :FunctionsText, :RecordingText, :TreeText)
end
