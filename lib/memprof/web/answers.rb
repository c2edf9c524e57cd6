# frozen_string_literal: true

module Memprof
  class Web
    # A cache of answers to questions about immutable data. Each answer is computed once, however many threads
    # wait for it.
    class Answers
      # An answer, with a lock for the threads that wait for it.
      class Answer
        def initialize
          @lock = Mutex.new
        end

        def get
          @lock.synchronize { @value ||= yield }
        end
      end
      private_constant :Answer

      def initialize(most)
        @most = most
        @lock = Mutex.new
        @answers = {}
      end

      # Drops the least recently used answer if there are too many.
      def fetch(question, &work)
        answer = @lock.synchronize do
          @answers[question] = @answers.delete(question) || Answer.new
          @answers.shift if @answers.size > @most
          @answers[question]
        end
        answer.get(&work)
      end

      def forget_if(&chosen)
        @lock.synchronize { @answers.delete_if { |question, _| chosen.call(question) } }
      end

      def clear = @lock.synchronize { @answers.clear }
    end
  end
end
