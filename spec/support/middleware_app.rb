# frozen_string_literal: true

require "stringio"

# Apps behind the middleware: what it printed, and the sessions that it opened.
RSpec.shared_context "with the middleware" do
  # What each report begins with.
  let(:heading) { "\n#{"#{"-" * 80}\n" * 2}" }
  let(:printed) { StringIO.new }
  let(:env) { Rack::MockRequest.env_for("/") }
  let!(:sessions) { [] }

  before do
    allow(Memprof::Session).to receive(:open).and_wrap_original do |open, **options|
      open.call(**options).tap { |session| sessions << session }
    end
  end

  def wrap(app, **options)
    described_class.new(app, io: printed, **options)
  end
end
