# frozen_string_literal: true

require "socket"
require_relative "../control/wire"
require_relative "../native"
require_relative "../process_copying"

module Memprof
  module CLI
    # Makes a process that has not loaded memprof load it, and do something. Only a line of Ruby is injected,
    # which its VM evaluates when it next checks for interrupts. All else goes over a connection that the
    # process is made to open; when that closes, all its work for us ends.
    class Attachment
      include ProcessCopying

      # Seconds for the VM to evaluate the line by itself; only then is a main thread woken that waits for the
      # system.
      AT_EASE = 0.1
      AGAIN_AFTER = 0.2 # seconds for the line to be evaluated, more with each attempt
      LONGEST_WAIT = 2
      # May be evaluated more than once. The descriptor is checked before use: by then its number may belong
      # to another file. Names are parameters, as the line sees the local variables of the program's file.
      LINE = "->(m,i,s){::Process.pid==%<pid>d&&m.thread_variable_get(:memprof_attached)!=INODE&&" \
             "(m.thread_variable_set(:memprof_attached,INODE);::Thread.new{begin;" \
             "::Thread.current.report_on_exception=false;" \
             "i=::IO.for_fd(DESCRIPTOR,\"rb\",autoclose:false);s=i.stat;" \
             "if(s.socket?&&s.ino==INODE);begin;i.autoclose=true;::Thread.current[:memprof_attached]=i;" \
             "::RubyVM::InstructionSequence.compile(::Marshal.load(i),\"memprof attach\").eval;" \
             "ensure;i.close;end;end;rescue ::Exception;end})}.(::Thread.main,nil,nil)"
      REQUIRE = /^require(?:_relative)? "[^"]+"$/
      AUTOLOAD = /^ *autoload :\w+, "([^"]+)"$/
      UNSUPPORTED = "Memprof::Unsupported: "
      OWN = %r{\A/(?:cli/|control/|mcp/|signal/|attached_boot)} # files that the process does not need
      LIMIT = 64 << 20 # bytes of an answer
      PATIENCE = 5 # seconds for the process to stop its work
      MOMENT = 1 # second for a process to end after its threads
      # Maximum bytes of address space for the library, its threads and a malloc recording. With less, the
      # process itself might end.
      ROOM = 512 << 20
      private_constant :AT_EASE, :AGAIN_AFTER, :LONGEST_WAIT, :LINE, :REQUIRE,
        :AUTOLOAD, :UNSUPPORTED, :OWN, :LIMIT, :PATIENCE, :MOMENT, :ROOM

      # Longest pause of its main thread, in seconds.
      attr_reader :pause

      # `extension` is the library for the Ruby of the process.
      def initialize(target, extension, terminal)
        @target = target
        @extension = extension
        @library = extension[%r{\A.*(?=/memprof/(?:\d\.\d/)?memprof\.[a-z]+\z)}]
        @terminal = terminal
        @pause = 0.0
        @ahead = String.new
      end

      # Returns the answer. `seconds` is the time for the process to begin, `work` that for the rest.
      # Recordings of the process go to `file`, if given.
      def run(request, seconds:, work:, file: nil)
        begin_work(request, seconds)
        pass(file, seconds) if file
        await_answer(work)
      rescue Interrupt
        ended_early || raise
      ensure
        close
      end

      # Makes it serve requests until {#close}; see `Attached#serve`.
      def serve(request, seconds:)
        begin_work(request.merge(do: "serve"), seconds)
        parse(receive(seconds))
        served = true
        # Another process may be traced meanwhile.
        Native.drop_snapshot
        self
      ensure
        close unless served
      end

      # Asks the serving process, and passes a descriptor, if any, when the process waits for it.
      def ask(request, pass: nil, seconds: PATIENCE)
        write("#{request}\n", seconds)
        answer = parse(receive(seconds))
        @socket.send_io(pass) if pass
        answer
      rescue SystemCallError
        ended
      end

      def wait(seconds) = !@ahead.empty? || !@socket.wait_readable(seconds).nil?

      def answer = parse(receive(PATIENCE))

      def close
        @terminal.progress(nil)
        withdraw unless @started
        @socket&.close
        Native.drop_snapshot
      end

      private

      def begin_work(request, seconds)
        check_room
        get_started(seconds)
        step("withdraw") # another command may attach now
        send_rest(request, seconds)
      end

      def check_room
        left = @target.address_space
        return if left.nil? || left >= ROOM

        refuse(:failed, "RLIMIT_AS leaves it #{Units.bytes(left)} of address space, and memprof needs " \
                        "#{Units.bytes(ROOM)}")
      end

      def get_started(seconds)
        beginning = Clock.now
        attempt = 0
        until @started
          kind, why = request_line(attempt += 1)
          refuse(kind, why) if kind == :traced && Clock.now - beginning > PATIENCE
          wait = (attempt == 1) ? AT_EASE : [AGAIN_AFTER * attempt, LONGEST_WAIT].min
          next if begun?(wait) { progress("waits for its VM", Clock.now - beginning) }

          time_out(seconds, why) if Clock.now - beginning > seconds
        end
      end

      # The line may wait for a thread that stays asleep: the next attempt is for the thread that woke.
      def request_line(attempt)
        Native.attach(@target.pid, @target.held, format(LINE, pid: @target.inner_pid)) unless @socket
        Native.attach_step((attempt == 1) ? "ask" : "wake")
        kind, why = take(next_of_tracer)
        refuse(kind, why) unless kind.is_a?(Float) || AGAIN.include?(kind)
        [kind, why]
      end

      # The first answer carries the connection, unless the process could not be stopped.
      def take(answer)
        descriptor = answer.grep(Integer).first
        if descriptor
          @socket = UNIXSocket.for_fd(descriptor)
          write(Marshal.dump(File.read(File.expand_path("../attached_boot.rb", __dir__))), PATIENCE)
        end
        @pause = answer.first if answer.first.is_a?(Float)
        answer
      end

      def begun?(seconds)
        deadline = Clock.now + seconds
        until @socket&.wait_readable(0.05)
          return false if Clock.now > deadline

          yield
        end
        @started = receive(PATIENCE)["begun"] == true
      end

      def time_out(seconds, why)
        why = "it is stopped, until it gets SIGCONT" if @target.stopped?
        why ||= "no thread of it looked for interrupts"
        raise UsageError, "process #{@target.pid} did not begin within #{seconds} s (--timeout): #{why}"
      end

      # Disarms the line, in case it is evaluated later. If it is being evaluated now, its thread closes the
      # connection; otherwise the process is made to.
      def withdraw
        return unless @socket

        step("withdraw")
        step("close") unless @socket.wait_readable(AT_EASE)
      end

      def step(name)
        Native.attach_step(name)
        next_of_tracer
      end

      # In the order in which the files were loaded here, so that none of them has to be read there. The
      # extension comes first: others make its constant private.
      def sources
        require "memprof/everything"
        require "memprof/attached"
        root = File.expand_path("..", __dir__)
        paths = $LOADED_FEATURES.select { |path| path.start_with?(root) && path.end_with?(".rb") }
        paths.reject! { |path| OWN.match?(path.delete_prefix(root)) }
        paths = ["#{root}/native.rb"] | paths
        paths.to_h { |path| [path, loading_nothing(File.read(path), path, paths)] }
          .transform_keys { |path| path.sub(root, "#{@library}/memprof") }
      end

      # A file without its requires and autoloads: memprof's files are sent along, and Ruby's libraries are
      # loaded where they are used.
      def loading_nothing(code, path, paths)
        code.gsub(REQUIRE, "").gsub(AUTOLOAD) do |line|
          name = $1.sub("\#{__dir__}", File.dirname(path)).sub(/\Amemprof/, File.expand_path("..", __dir__))
          paths.include?("#{name}.rb") ? "" : line
        end
      end

      def package(request)
        { library: @library, extension: @extension, sources: sources,
          request: request.transform_keys(&:to_s) }
      end

      def send_rest(request, seconds)
        progress("loads memprof", 0)
        bytes = Marshal.dump(package(request))
        write("#{bytes.bytesize}\n#{bytes}", seconds)
        @asked = true
      end

      # Sends the descriptor when the process waits for it: a read drops descriptors that come with the bytes.
      def pass(file, seconds)
        parse(receive(seconds))
        @socket.send_io(file)
      rescue SystemCallError
        ended
      end

      # Next to busy threads, the process reads slowly.
      def write(bytes, seconds)
        beginning = Clock.now
        until bytes.empty?
          sent = @socket.sendmsg_nonblock(bytes, Socket::MSG_NOSIGNAL, exception: false)
          next bytes = bytes.byteslice(sent..) unless sent == :wait_writable

          time = Clock.now - beginning
          too_late(seconds) if time > seconds
          progress("loads memprof", time)
          @socket.wait_writable(AT_EASE)
        end
      rescue SystemCallError
        ended
      end

      def await_answer(seconds)
        beginning = Clock.now
        until @socket.wait_readable(AT_EASE)
          time = Clock.now - beginning
          too_late(seconds) if time > seconds
          progress("works", time)
        end
        parse(receive(PATIENCE))
      end

      def too_late(seconds)
        raise UsageError, "process #{@target.pid} did not answer within #{seconds.round} s"
      end

      # The process's user may send anything.
      def receive(seconds)
        Control::Wire.read(@socket, seconds: seconds, limit: LIMIT, ahead: @ahead) || ended
      rescue Control::Broken => e
        refuse(:failed, "its answer cannot be read: #{Printable.line(e.message)}")
      end

      # All threads of an ending process are killed first.
      def parse(answer)
        if answer["killed"]
          ended if ended_within?(MOMENT)
          refuse(:failed, "the thread \"memprof attach\" was killed")
        end
        return answer unless answer["error"]

        error = answer["error"].to_s
        # The message speaks for itself.
        refuse(:failed, Printable.line(error.delete_prefix(UNSUPPORTED))) if error.start_with?(UNSUPPORTED)

        place = answer["at"] ? " (#{answer["at"]})" : ""
        refuse(:failed, Printable.line("#{explained(error)}#{place}"))
      end

      def explained(error)
        return error unless error.match?(/\ALoadError: .*memprof\.(?:so|bundle)/)

        "it does not see #{@library}: install memprof where it runs"
      end

      def ended
        ended_within?(MOMENT)
        raise UsageError, "process #{@target.pid} #{@target.running? ? "broke off" : "ended"}"
      end

      def ended_within?(seconds)
        deadline = Clock.now + seconds
        sleep(AT_EASE / 10) while @target.running? && Clock.now < deadline
        !@target.running?
      end

      # The results so far; nil without any.
      def ended_early
        return unless @asked

        @socket.close_write
        return still_running unless @socket.wait_readable(PATIENCE)

        answer = parse(receive(PATIENCE))
        return answer unless answer["stopped"]

        @terminal.warn("process #{@target.pid} has stopped the code")
        nil
      rescue Interrupt
        still_running
      end

      def still_running
        @terminal.warn("process #{@target.pid} is still running the code, which does not look for " \
                       "interrupts; its thread \"memprof attach\" ends as soon as it does")
        nil
      end

      def progress(what, seconds)
        @terminal.progress("process #{@target.pid} #{what}, #{seconds.to_i} s")
      end

      def refuse(kind, why)
        raise UsageError, "process #{@target.pid}: #{remedy(kind, why)}"
      end
    end
  end
end
