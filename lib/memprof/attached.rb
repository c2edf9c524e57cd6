# frozen_string_literal: true

module Memprof
  # Performs a request of `memprof attach` in a process, and undoes it when it is done, or when the connection
  # ends for any reason. The answer is one line of JSON.
  class Attached
    # The command has ended, or wants its answer now.
    class Ended < Exception; end # rubocop:disable Lint/InheritException -- code that is evaluated may rescue others

    LONGEST = 64 * 1024
    TRIES = 3
    MOMENT = 1 # second for the code to stop after each exception
    MALLOC_SAMPLE = "64KiB" # records the line of one block in so many bytes
    MOST_LINES = 3
    private_constant :Ended, :LONGEST, :TRIES, :MOMENT, :MALLOC_SAMPLE, :MOST_LINES

    class << self
      # The child of a fork has neither the command nor the thread that would stop it.
      def after_fork = @current&.abandon

      # @api private
      attr_writer :current
    end

    # `input` and `output` are the same connection.
    def initialize(input, output, library)
      @input = input
      @output = output
      @library = library
      @undo = nil
    end

    def run(request)
      Thread.current.name = "memprof attach"
      AfterFork.register(Attached)
      Attached.current = self
      Native.quiet do
        Thread.handle_interrupt(Ended => :never) { work(request) }
      end
    ensure
      Attached.current = nil
    end

    def abandon
      Attached.current = nil
      @undo&.call
      @input.close
    end

    private

    # A thread that is killed, perhaps by the code it evaluates, has no outcome.
    def work(request)
      @file = file_of_command if request["file"] == true
      watcher = watch(Thread.current) unless request["do"] == "serve"
      found = outcome(request)
    ensure
      watcher&.kill
      answer(found || { killed: true })
    end

    # Opened by the command: this process may not see the path, or may lack permission to write there.
    def file_of_command
      answer({ begun: true })
      IO.select([@input])
      number = Native.receive_descriptor(@input.fileno)
      IO.for_fd(number, "wb") if number
    end

    # Ends the work when the connection ends, or anything arrives over it. Returns once its thread is running,
    # so that the VM's allocations for it don't count.
    def watch(worker)
      begun = Thread::Queue.new
      watcher = Thread.new do
        Thread.current.name = "memprof attach: connection"
        Thread.current.report_on_exception = false
        Native.quiet { Malloc.quiet { await_end(begun, worker) } }
      end
      begun.pop
      watcher
    end

    def await_end(begun, worker)
      begun << true
      IO.select([@input])
      TRIES.times do
        worker.raise(Ended)
        break if worker.join(MOMENT)
      end
      worker.kill
    end

    def outcome(request)
      check_version
      case request["do"]
      when "track" then track(request)
      when "malloc" then malloc(request)
      when "serve" then serve(request)
      else evaluate(request)
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- goes to the command that asked
      { error: "#{e.class}: #{e.message.to_s.lines.first.to_s.chomp}", at: e.backtrace&.first }
    end

    # The process may have loaded another memprof before, which this file does not belong to.
    def check_version
      ours = File.realpath(File.join(@library, "memprof/native.rb"))
      loaded = $LOADED_FEATURES.grep(%r{/memprof/native\.rb\z})
      return if loaded.any? { |feature| File.exist?(feature) && File.realpath(feature) == ours }

      raise Error, "the process runs memprof #{VERSION} of another installation; use that one's command"
    end

    # Leaves tracking on if it was on before.
    def track(request)
      @undo = -> { Memprof.stop } if Memprof.start(**options(request, "sample", "stack"))
      wait(request["duration"])
      session = Memprof.send(:session)
      session.collect
      { lines: session.stats_lines(limit: request["limit"]) }
    ensure
      undo
    end

    def malloc(request)
      started = record(request)
      raise Error, "a recording of malloc runs already" unless started

      @undo = -> { [Malloc.stop, Malloc.reset] }
      wait(request["duration"])
      Malloc.quiet { Session.collect }
      Malloc.stop
      { lines: @file ? [] : Malloc.table(limit: request["limit"] || 20).to_s.lines.map(&:chomp) }
    ensure
      undo
    end

    def record(request)
      settings = options(request, "sample", "stack", "native")
      @file ? Malloc.record_to(@file, **settings) : Malloc.start(**settings)
    end

    # Tracks, and answers the command's requests, line by line, until the connection ends.
    def serve(request)
      @undo = start(request)
      answer({ serves: true })
      while (asked = @input.gets("\n"))
        answer(asked == "dump\n" ? dump(request["values"]) : malloc_lines)
      end
      { stopped: true }
    ensure
      undo
    end

    # Leaves tracking on if it was on before.
    def start(request)
      tracks = Memprof.start(**options(request, "sample", "stack"))
      records = Malloc.start(sample: MALLOC_SAMPLE)
      -> { [(Memprof.stop if tracks), (Malloc.stop && Malloc.reset if records)] }
    end

    # Writes to the descriptor that the command sends once it knows that this waits for it.
    def dump(values)
      require "io/wait"
      answer({ begun: true })
      IO.select([@input])
      number = Native.receive_descriptor(@input.fileno) or raise Error, "no descriptor was passed"
      Dump.stream(IO.for_fd(number, "wb"), Dump::Options.new(format: "binary", values: values))
      { done: true }
    end

    # The lines with most live malloc memory, most first: bytes, and allocation site.
    def malloc_lines
      Malloc.quiet { Session.collect }
      sites = Malloc.sites.map { |name, numbers| [numbers.last, name] }.select { |bytes, _| bytes.positive? }
      { lines: sites.max(MOST_LINES).map { |bytes, name| { bytes: bytes, site: name } } }
    end

    def undo
      @undo&.call
      @undo = nil
    end

    def evaluate(request)
      value = interruptible { eval(request["code"], TOPLEVEL_BINDING.dup, request["file"], 1) } # rubocop:disable Security/Eval -- what it is for
      { lines: [Printable.utf8(value.inspect.to_s)[0, LONGEST]] }
    rescue Ended
      { stopped: true }
    end

    def options(request, *names) = request.slice(*names).compact.transform_keys(&:to_sym)

    def wait(seconds)
      Malloc.quiet { interruptible { sleep(seconds) } }
    rescue Ended
      nil # the results so far are the answer
    end

    def interruptible(&) = Thread.handle_interrupt(Ended => :immediate, &)

    # Without the gem json, which the program may not have loaded.
    def json(value)
      case value
      when Hash then "{#{value.map { |key, part| "#{json(key.name)}:#{json(part)}" }.join(",")}}"
      when Array then "[#{value.map { |part| json(part) }.join(",")}]"
      when String
        escaped = Printable.utf8(value).gsub(/["\\\u0000-\u001f]/) { |char| format("\\u%04x", char.ord) }
        "\"#{escaped}\""
      else value.nil? ? "null" : value.to_s
      end
    end

    # Without raising SIGPIPE if the command is gone: a program may let it end the process.
    def answer(facts)
      rest = "#{json(facts)}\n"
      until rest.empty?
        sent = Native.send_now(@input.fileno, rest)
        rest = rest.byteslice(sent..)
        IO.select(nil, [@output]) if sent.zero?
      end
    rescue SystemCallError, IOError
      nil # the command is gone
    end
  end
end
