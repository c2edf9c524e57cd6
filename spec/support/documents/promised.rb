# frozen_string_literal: true

# Compares values with what the comments behind them promise: `sum # => 3`. Loads no library, so that a
# snippet that forgets a `require` still fails.
module Promised
  LINE = /\A(?<code>\s*\S.*?)\s+# ?=> (?<value>.+)\n\z/

  class << self
    # The code, with each line that promises a value as a call that checks it.
    def checked(code)
      code.lines.map do |line|
        match = LINE.match(line)
        next line unless match && complete?(match[:code])

        "Promised.value((#{match[:code].strip}), #{match[:value].dump})\n"
      end.join
    end

    def value(actual, promised)
      expected = eval(promised, TOPLEVEL_BINDING) # rubocop:disable Security/Eval -- our own documents
      abort("promised: #{promised}\nactual:   #{actual.inspect}") unless actual == expected
    end

    private

    # A line that begins or ends inside of a statement has no value of its own.
    def complete?(line)
      RubyVM::InstructionSequence.compile(line) && true
    rescue SyntaxError
      false
    end
  end
end
