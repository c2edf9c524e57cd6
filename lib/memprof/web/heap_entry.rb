# frozen_string_literal: true

require_relative "../clock"
require_relative "../core"
require_relative "../heap"
require_relative "answers"

module Memprof
  class Web
    # The heap is not open yet: the waiting page shows the progress.
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

        # Opening progress: a stage of {Memprof::Heap.open}, and bytes.
        Progress = Struct.new(:stage, :done, :total)

        attr_reader :id, :name, :path, :file, :state, :progress, :error, :size, :used

        def initialize(id, name, path:, file: path, options: {})
          @id = id
          @name = name
          @path = path
          @file = file
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

        # Asks the heap a question. A heap never changes, so the last answers are cached.
        def answer(question, parameters)
          asked = heap
          @answers.fetch([question, parameters]) { asked.ask(question, **parameters) }
        end

        # Whether it is a core file, which has malloc blocks besides the heap. A file of unknown origin is
        # read as a dump, if at all.
        def core?
          @is_core = @options[:max_bytes].nil? && Core.core?(@path) if @is_core.nil?
          @is_core
        end

        # The core file; the first thread that asks reads its blocks.
        def core = @reading.synchronize { @core ||= Core.open(@path) }

        # The result of a method of the core file, also cached.
        def core_answer(method)
          asked = core
          @answers.fetch([asked, method]) { asked.public_send(method) }
        end

        # Whether blocks of malloc are objects of the open heap, as with `--blocks` in a terminal.
        def blocks? = @has_blocks == true

        # Whether it has objects of Ruby, as far as is known: an open core file may be of another program.
        def ruby? = !(@state == :open && core?) || !core_answer(:overview)[:ruby_pages].nil?

        # Opens it in the background.
        def prepare(&opened)
          @lock.synchronize { start(&opened) if @state == :idle }
        end

        # Marks it as in use: until {release}, it is not unloaded.
        def acquire
          @lock.synchronize do
            @users += 1
            @used = Clock.now
          end
        end

        # In a forked child it has no users (see {forget_users}), as the one to release it was in the parent.
        def release
          @lock.synchronize do
            @users -= 1 if @users.positive?
            @used = Clock.now
          end
        end

        # The users were threads of the parent process.
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

        # Releases memory and files, even if in use; also cancels an opening. It is reopened on demand, and a
        # failed opening is retried.
        def unload = stop(:idle)

        # The same, permanently.
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
          change_state(:failed) { @error = Error.new("cannot read #{@path}: #{e.message}") }
        ensure
          release
        end

        # A core file is read once for its heap and its blocks.
        def open_heap(&progress)
          core? ? heap_of(core, &progress) : Memprof::Heap.open(@path, **@options, &progress)
        end

        # With the blocks of malloc, unless they are unknown. Errors of the heap do not name the file.
        def heap_of(core, &progress)
          options = @options.slice(:ignore_stack_roots)
          begin
            core.heap(blocks: true, **options, &progress).tap { @has_blocks = true }
          rescue Unsupported
            core.heap(**options, &progress)
          end
        rescue Error => e
          raise e.class, "cannot read #{@path}: #{e.message}", cause: nil
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
