# frozen_string_literal: true

module Memprof
  # Does in a process what `memprof attach` asked it for, and takes it back. Request and answer are files.
  class Attached
    GLANCE = 0.05
    LONGEST = 64 * 1024
    private_constant :GLANCE, :LONGEST

    def initialize(directory, library)
      @directory = directory
      @library = library
    end

    def run
      Thread.current.name = "memprof attach"
      Native.quiet do
        Loading.json
        work(JSON.parse(File.read(path("started"))))
      end
    end

    private

    def path(name) = File.join(@directory, name)

    # A thread that is killed, perhaps by the code that it evaluates, has no outcome.
    def work(request)
      found = outcome(request)
    ensure
      answer(found || { error: "the thread \"memprof attach\" was killed" })
    end

    def outcome(request)
      check_version
      case request["do"]
      when "track" then track(request)
      when "malloc" then malloc(request)
      else evaluate(request)
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- goes to the command that asked
      { error: "#{e.class}: #{e.message.to_s.lines.first.to_s.chomp}", at: e.backtrace&.first }
    end

    # The process may have loaded another one before, of which this file is not a part.
    def check_version
      ours = File.realpath(File.join(@library, "memprof/native.rb"))
      loaded = $LOADED_FEATURES.grep(%r{/memprof/native\.rb\z})
      return if loaded.any? { |feature| File.exist?(feature) && File.realpath(feature) == ours }

      raise Error, "the process has loaded another memprof (#{VERSION}): use that one's command"
    end

    # Tracking that was on before stays on.
    def track(request)
      started = Memprof.start(**options(request, "sample", "stack"))
      wait(request["duration"])
      { lines: Memprof.send(:session).stats_lines(limit: request["limit"]) }
    ensure
      Memprof.stop if started
    end

    def malloc(request)
      started = Malloc.start(**options(request, "sample", "stack"))
      raise Error, "a recording of malloc runs already" unless started

      wait(request["duration"])
      Malloc.stop
      { lines: Malloc.table(limit: request["limit"] || 20).to_s.lines.map(&:chomp) }
    ensure
      if started
        Malloc.stop
        Malloc.reset
      end
    end

    def evaluate(request)
      value = eval(request["code"], TOPLEVEL_BINDING.dup, request["file"], 1) # rubocop:disable Security/Eval -- what it is for
      { lines: [Printable.utf8(value.inspect.to_s)[0, LONGEST]] }
    end

    def options(request, *names) = request.slice(*names).compact.transform_keys(&:to_sym)

    # Until the command that asked is gone, at most.
    def wait(seconds)
      deadline = Clock.now + seconds
      sleep(GLANCE) until Clock.now >= deadline || File.exist?(path("stop"))
    end

    def answer(facts)
      File.write(path("answer.new"), JSON.generate(facts), perm: 0o600)
      File.rename(path("answer.new"), path("answer"))
    end
  end
end
