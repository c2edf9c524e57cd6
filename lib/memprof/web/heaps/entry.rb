# frozen_string_literal: true

require_relative "../../clock"
require_relative "../../core"
require_relative "../../heap"
require_relative "../answers"

module Memprof
  class Web
    # A heap is not open yet: the page that waits shows how far it is.
    class Opening < StandardError
      attr_reader :entry

      def initialize(entry)
        @entry = entry
        super("#{entry.name} is opening")
      end
    end

    class Heaps
      # One heap, and the thread that opens it.
      class Entry
        # Seconds that a page waits for a heap before it shows the progress: small dumps are open by then.
        PATIENCE = 0.4
        KEPT = 50 # answers
        private_constant :PATIENCE, :KEPT

        # How far the opening is: a stage of {Memprof::Heap.open}, and bytes.
        Progress = Struct.new(:stage, :done, :total)

        attr_reader :id, :name, :path, :state, :progress, :error, :size, :used

        def initialize(id, name, path:, options: {})
          @id = id
          @name = name
          @path = path
          @options = options
          @state = :idle
          @used = Clock.now
          @users = 0
          @progress = Progress.new(:opening, 0, nil)
          @lock = Mutex.new
          @reading = Mutex.new
          @changed = ConditionVariable.new
          @answers = Answers.new(KEPT)
        end

        def heap(patience: PATIENCE)
          @lock.synchronize do
            start if @state == :idle
            wait(patience)
            case @state
            when :open then @heap
            when :failed then raise @error
            when :closed then raise NotFound, "#{name} is closed"
            else raise Opening, self
            end
          end
        end

        # Asks the heap a question. A heap never changes, so the same question has the same answer: the
        # last ones are kept.
        def answer(question, parameters)
          asked = heap
          @answers.fetch([question, parameters]) { asked.ask(question, **parameters) }
        end

        # Whether it is a core file, which has blocks of malloc besides the heap. One of unknown origin is
        # read as a dump, if at all.
        def core?
          @is_core = @options[:max_bytes].nil? && Core.core?(@path) if @is_core.nil?
          @is_core
        end

        # The core file; the first thread that asks reads its blocks.
        def core = @reading.synchronize { @core ||= Core.open(@path) }

        # What a method of the core file answers, which is kept, too.
        def core_answer(method, *arguments, **parameters)
          asked = core
          @answers.fetch([asked, method, arguments, parameters]) do
            asked.public_send(method, *arguments, **parameters)
          end
        end

        # Opens it in the background.
        def prepare(&opened)
          @lock.synchronize { start(&opened) if @state == :idle }
        end

        # Somebody begins to use it: until they {release} it, it is not unloaded.
        def acquire
          @lock.synchronize do
            @users += 1
            @used = Clock.now
          end
        end

        # In the child of a fork it has no users (see {forget_users}), and who releases it was in the parent.
        def release
          @lock.synchronize do
            @users -= 1 if @users.positive?
            @used = Clock.now
          end
        end

        # Who used it was a thread of the process that this one was forked from.
        def forget_users
          @users = 0
        end

        # Whether it was open before.
        def closed? = @state == :idle && !@size.nil?

        def takes_memory?
          @lock.synchronize { %i[open opening].include?(@state) || (@state == :idle && @users.positive?) }
        end

        # Releases memory and files, unless it is in use.
        def unload_unused
          @lock.synchronize do
            next false unless @state == :open && @users.zero?

            drop(:idle)
            true
          end
        end

        # Releases memory and files, even if it is in use; also those of an opening, which ends. It is opened
        # again when it is asked for, and what could not be opened is tried again.
        def unload = stop(:idle)

        # The same for good.
        def close = stop(:closed)

        private

        def stop(state)
          thread = @lock.synchronize do
            drop(state)
            @changed.broadcast
            @thread.tap { @thread = nil }
          end
          thread&.kill
        end

        def drop(state)
          @state = state
          @heap = @core = @error = nil
          @answers.clear
        end

        def start(&opened)
          @state = :opening
          @progress = Progress.new(:opening, 0, nil)
          @thread = Thread.new { read(&opened) }
          @thread.name = "memprof: opens heap #{id}"
        end

        def wait(patience)
          deadline = Clock.now + patience
          while @state == :opening && (left = deadline - Clock.now).positive?
            @changed.wait(@lock, left)
          end
        end

        def read
          acquire
          heap = open_heap { |*at| @progress = Progress.new(*at) }
          opened = change_state(:open) do
            @heap = heap
            @size = heap.size
          end
          yield(self) if opened && block_given?
        rescue NotFound
          nil # closed meanwhile
        rescue Error => e
          change_state(:failed) { @error = e }
        rescue SystemCallError => e
          change_state(:failed) { @error = Error.new("can't read #{@path}: #{e.message}") }
        ensure
          release
        end

        # Of a core file, which is read once for its heap and its blocks.
        def open_heap(&progress)
          core? ? heap_of(core, &progress) : Memprof::Heap.open(@path, **@options, &progress)
        end

        # Errors of the heap do not name the file.
        def heap_of(core, &progress)
          core.heap(**@options.slice(:ignore_stack_roots, :blocks), &progress)
        rescue Error => e
          raise e.class, "can't read #{@path}: #{e.message}", cause: nil
        end

        def change_state(state)
          @lock.synchronize do
            next false unless @state == :opening && @thread == Thread.current

            yield
            @state = state
            @changed.broadcast
            true
          end
        end
      end
    end
  end
end
