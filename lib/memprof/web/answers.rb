# frozen_string_literal: true

module Memprof
  class Web
    # The last answers to questions about what never changes. Each is worked out once, however many wait for
    # it.
    class Answers
      # One of them, with the lock of those who wait.
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

      # What was asked for longest ago makes room.
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
