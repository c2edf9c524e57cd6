# frozen_string_literal: true

# A tab of a Chromium, and the pages of a leaking Rails app (see WebStage); skips where these are unavailable.
RSpec.shared_context "with a browser" do
  before(:all) do
    WebStage.missing { |obstacle| skip obstacle }
    @stage = WebStage.shared
    @tab = @stage.tab
  end

  after(:all) { @tab&.close }

  let(:tab) { @tab }
end
