# frozen_string_literal: true

require "memprof"

# Loads what methods of memprof otherwise load when they are first called. A signal handler can't load files:
# one of a program's own that names classes of memprof, as `Memprof::Heap`, needs this before.
#
#   require "memprof/everything"
#   trap("USR2") { puts Memprof::Heap.capture.leaks }
#
# By their constants: a file that is being loaded by its name would load itself again where it names its own.
load_parts = ->(namespace, *parts) { parts.each { |part| namespace.const_get(part) } }
load_parts.call(Memprof, :Census, :Core, :Dump, :Growth, :Heap, :Iseqs, :Memory, :Trace)
load_parts.call(Memprof::Core, :BlockOrigins)
load_parts.call(Memprof::Report, :Classic, :Json, :Markdown, :Overview, :Text)
load_parts.call(Memprof::Growth, :GrowthText, :Holders)
load_parts.call(Memprof::Iseqs, :IseqsText)
load_parts.call(Memprof::Memory, :Cluster, :MemoryText)
load_parts.call(Memprof::Memory::Cluster, :ClusterText)
# Its load starts a recording if MEMPROF_MALLOC asks for one, which is for `require "memprof/malloc"` to do.
unless ENV.key?("MEMPROF_MALLOC") && Memprof.autoload?(:Malloc)
  load_parts.call(Memprof::Malloc, :InterpreterFunctions, :MallocText, :Recording, :Stacks)
  load_parts.call(Memprof::Malloc::Recording, :Comparison, :FunctionsText, :RecordingText, :TreeText)
end
