# frozen_string_literal: true

require "fileutils"
require "memprof/heap"
require "tmpdir"

# Dumps of the programs in examples/, each written once.
module HeapDumps
  # Several threads of an example may request the same dump at once.
  MAKING = Mutex.new

  class << self
    # @return [String] a directory with the dumps
    def directory
      @directory ||= Dir.mktmpdir("memprof-dumps-").tap do |directory|
        at_exit { FileUtils.rm_rf(directory) }
      end
    end

    # Whether this build supports a question: the extension may be older than the command.
    def answer?(question, dump)
      return Memprof::Heap.method_defined?(question) if %i[diff export].include?(question)

      Memprof::Heap.open(dump).ask(question)
      true
    rescue ArgumentError => e
      !e.message.include?("no such question")
    end
  end

  # The path of a dump that an example writes.
  def heap_dump(name, example, *arguments)
    MAKING.synchronize do
      path = File.join(HeapDumps.directory, name)
      next path if File.exist?(path)

      program = File.join(ChildRuby::ROOT, "examples", example)
      result = run_ruby(program, args: [*arguments, HeapDumps.directory])
      raise result.stderr unless result.success?

      path
    end
  end

  # One of three dumps of an unbounded cache, with 1,000, 3,000 and 5,000 sessions.
  def cache_dump(number = 1)
    heap_dump("cache-#{number}.memprof", "heap_cache.rb")
  end

  def needs(question)
    skip "this build does not answer #{question}" unless HeapDumps.answer?(question, cache_dump)
  end
end
