# frozen_string_literal: true

# RSpec can't print a failure whose explanation, such as what a child wrote to stderr, is empty.
module Explanations
  # Not a file of the project: RSpec would show this line as the one that failed.
  module_eval(<<~RUBY, "explanations", 1)
    def to(matcher = nil, message = nil, &block) = super(matcher, message == "" ? nil : message, &block)
  RUBY
end
RSpec::Expectations::ExpectationTarget.prepend(Explanations)
