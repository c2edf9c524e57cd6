# frozen_string_literal: true

RSpec.describe "Views and serializers that ActiveSupport reports" do
  before(:all) { need(client: "active_support") }

  def asked(code)
    client_program(<<~RUBY)["views"]
      require "logger"
      require "active_support"
      require "active_support/notifications"
      def render(name, **payload, &block) = ActiveSupport::Notifications.instrument(name, payload, &block)
      emit(**traced(tracers: :views) { #{code} })
    RUBY
  end

  def calls(views)
    views["templates"].transform_values { |one| one["calls"] }
  end

  it "have their own time, without that of what they render" do
    views = asked(<<~RUBY)
      render("render_template.action_view", identifier: "app/show.erb") do
        sleep(0.02)
        2.times { render("render_partial.action_view", identifier: "app/_row.erb") { sleep(0.01) } }
        Thread.new { render("render_partial.action_view", identifier: "app/_other.erb") { nil } }.join
      end
    RUBY
    expect(views["calls"]).to eq(3)
    expect(calls(views)).to eq("app/show.erb" => 1, "app/_row.erb" => 2)
    own = views["templates"].transform_values { |one| one["time"] }
    expect(own["app/_row.erb"]).to be_between(0.02, 20)
    expect(own.values.sum).to be_within(1e-6).of(views["time"])
  end

  it "are serializers by class and components by name, also if one raises" do
    views = asked(<<~RUBY)
      render("render.active_model_serializers", serializer: String, adapter: 1) { nil }
      begin; render("render.view_component", name: "Card") { raise IOError }; rescue IOError; end
      render("render_template.action_view", identifier: nil) { nil }
      render("process_action.action_controller") { nil }
    RUBY
    expect(views["serializers"].transform_values { |one| one["calls"] }).to eq("String" => 1)
    expect(calls(views)).to eq("Card" => 1, "(unnamed)" => 1)
  end

  it "are a bounded number of names" do
    views = asked('130.times { |id| render("render_layout.action_view", identifier: id.to_s) { nil } }')
    expect(views["templates"].size).to eq(101)
    expect(views["templates"]["(others)"]["calls"]).to eq(30)
  end
end
