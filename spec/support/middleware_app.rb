# frozen_string_literal: true

require "stringio"

# Apps behind the middleware: its output, and the sessions it opened.
RSpec.shared_context "with the middleware" do
  # The beginning of each report.
  let(:heading) { "\n#{"#{"-" * 80}\n" * 2}" }
  let(:printed) { StringIO.new }
  let(:env) { Rack::MockRequest.env_for("/") }
  let!(:sessions) { [] }

  before do
    # Not `open`: RSpec 3.12 loses keywords on Ruby 4.0.
    allow(Memprof::Session).to receive(:new).and_wrap_original do |new, *options|
      new.call(*options).tap { |session| sessions << session }
    end
  end

  def wrap(app, **options)
    described_class.new(app, io: printed, **options)
  end
end
