# frozen_string_literal: true

require_relative "../../clock"
require_relative "../../heap"

module Memprof
  class Web
    # A heap is not open yet: the page that waits shows how far it is.
    #
    # @api private
    class Opening < StandardError
      # @return [Heaps::Entry]
      attr_reader :entry

      # @param entry [Heaps::Entry]
      def initialize(entry)
        @entry = entry
        super("#{entry.name} is being opened")
      end
    end

    class Heaps
      # One heap, and the thread that opens it.
      #
      # @api private
      class Entry
        # Seconds that a page waits for a heap before it shows the progress: small dumps are open by then.
        PATIENCE = 0.4
        # Answers that are kept.
        KEPT = 50
        private_constant :PATIENCE, :KEPT

        # An answer, which is worked out once, however many wait for it.
        class Answer
          def initialize
            @lock = Mutex.new
          end

          # @yieldreturn [Hash{Symbol => Object}]
          # @return [Hash{Symbol => Object}]
          def get
            @lock.synchronize { @value ||= yield }
          end
        end
        private_constant :Answer

        # How far the opening is: a stage of {Memprof::Heap.open}, and bytes.
        Progress = Struct.new(:stage, :done, :total)

        # @return [Integer]
        attr_reader :id
        # @return [String]
        attr_reader :name
        # @return [String, nil] of the dump
        attr_reader :path
        # @return [Symbol] :idle, :opening, :open, :failed or :closed
        attr_reader :state
        # @return [Progress]
        attr_reader :progress
        # @return [Memprof::Error, nil] why it could not be opened
        attr_reader :error
        # @return [Integer, nil] number of objects, once it was open
        attr_reader :size
        # @return [Float] when somebody used it last, by {Clock}
        attr_reader :used

        # @param id [Integer]
        # @param name [String]
        # @param path [String, nil] of a dump to open
        # @param heap [Memprof::Heap, nil] that is open already
        # @param options [Hash] as Memprof::Heap.open takes them
        def initialize(id, name, path: nil, heap: nil, options: {})
          @id = id
          @name = name
          @path = path
          @heap = heap
          @options = options
          @state = heap ? :open : :idle
          @size = heap&.size
          @used = Clock.now
          @users = 0
          @progress = Progress.new(:opening, 0, nil)
          @lock = Mutex.new
          @changed = ConditionVariable.new
          @answers = {}
        end

        # @param patience [Numeric] seconds to wait for it
        # @return [Memprof::Heap]
        # @raise [Opening] if it takes longer than that
        # @raise [Memprof::Error] if it could not be opened
        # @raise [NotFound] if it has been closed
        def heap(patience: PATIENCE)
          @lock.synchronize do
            start if @state == :idle
            wait(patience)
            case @state
            when :open then @heap
            when :failed then raise @error
            when :closed then raise NotFound, "#{name} has been closed"
            else raise Opening, self
            end
          end
        end

        # Puts a question to the heap. A heap never changes, so the same question has the same answer: the
        # last ones are kept.
        #
        # @param question [Symbol]
        # @param parameters [Hash{Symbol => Object}]
        # @return [Hash{Symbol => Object}]
        # @raise (see #heap)
        # @raise [ArgumentError] if the parameters are wrong
        def answer(question, parameters)
          asked = heap
          key = [question, parameters]
          answer = @lock.synchronize do
            @answers[key] = @answers.delete(key) || Answer.new
            @answers.shift if @answers.size > KEPT
            @answers[key]
          end
          answer.get { asked.ask(question, **parameters) }
        end

        # Opens it while nobody waits.
        #
        # @yieldparam entry [Entry] when it is open, in the thread that opened it: to ask what will be asked
        #   first
        # @return [void]
        def prepare(&opened)
          @lock.synchronize { start(&opened) if @state == :idle }
        end

        # Somebody begins to use it: until they {leave}, it is not put to rest.
        #
        # @return [void]
        def take
          @lock.synchronize do
            @users += 1
            @used = Clock.now
          end
        end

        # In the child of a fork nobody used it (see {forget_users}), and who leaves was in the parent.
        #
        # @return [void]
        def leave
          @lock.synchronize do
            @users -= 1 if @users.positive?
            @used = Clock.now
          end
        end

        # Who used it was a thread of the process that this one was forked from.
        #
        # @return [void]
        def forget_users
          @users = 0
        end

        # @return [Boolean] whether it is open, or will be soon
        def takes_memory?
          @lock.synchronize { %i[open opening].include?(@state) || (@state == :idle && @users.positive?) }
        end

        # Gives memory and files back, unless it is in use, or can't be opened again.
        #
        # @return [Boolean] whether it did
        def rest
          @lock.synchronize do
            next false unless @state == :open && @users.zero? && @path

            @state = :idle
            @heap = nil
            @answers.clear
            true
          end
        end

        # Gives memory and files back, whoever uses it; also those of an opening, which ends. It is opened
        # again when it is asked for, and what could not be opened is tried again.
        #
        # @return [Boolean] false for what is no file: that could not be opened again
        def shut
          return false unless @path

          thread = @lock.synchronize do
            @state = :idle
            @heap = @error = nil
            @answers.clear
            @changed.broadcast
            @thread.tap { @thread = nil }
          end
          thread&.kill
          true
        end

        # For good. Ends the opening, too.
        #
        # @return [void]
        def close
          thread = @lock.synchronize do
            @state = :closed
            @heap = nil
            @answers.clear
            @changed.broadcast
            @thread
          end
          thread&.kill
        end

        private

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
          take
          heap = Memprof::Heap.open(@path, **@options) { |*at| @progress = Progress.new(*at) }
          opened = become(:open) do
            @heap = heap
            @size = heap.size
          end
          yield(self) if opened && block_given?
        rescue NotFound
          nil # closed meanwhile
        rescue Error => e
          become(:failed) { @error = e }
        rescue SystemCallError => e
          become(:failed) { @error = Error.new("can't read #{@path}: #{e.message}") }
        ensure
          leave
        end

        # @return [Boolean] false if the heap was closed, or shut, while its thread was at it
        def become(state)
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
