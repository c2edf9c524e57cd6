# frozen_string_literal: true

# A tab of a Chromium, and the pages of a Rails app that leaks (see WebStage); skips where there can be none.
RSpec.shared_context "with a browser" do
  before(:all) do
    WebStage.missing { |obstacle| skip obstacle }
    @stage = WebStage.shared
    @tab = @stage.tab
  end

  after(:all) { @tab&.close }

  let(:tab) { @tab }
end
