# frozen_string_literal: true

require "memprof/folded_path"

RSpec.describe Memprof::FoldedPath do
  def step(label, name = "Node", type: "object") = { label: label, class: name, type: type }

  def shown(steps, **options)
    described_class.of({ steps: steps, omitted: 0 }.merge(options)).map do |step|
      step[:omitted] ? [step[:omitted], step[:like]&.fetch(:label)] : step[:label]
    end
  end

  it "shows of a run of equal steps the first and the last" do
    list = Array.new(60) { step("@next") }
    expect(shown([step("$list", "List"), *list, step("@value", "String")]))
      .to eq ["$list", "@next", [58, "@next"], "@next", "@value"]
    expect(shown([step("$list"), *list.take(4)])).to eq ["$list", *["@next"] * 4]
  end

  it "takes elements for equal, whatever their index, and classes for different" do
    expect(shown(Array.new(6) { |index| step("[#{index}]", "Array") })).to eq ["[0]", [4, "[0]"], "[5]"]
    expect(shown(Array.new(6) { step("super", "Class", type: "class") })).to eq ["super"] * 6
  end

  it "counts what the answer lacks, and says of it that it is equal only if that is known" do
    list = Array.new(30) { step("@next") }
    expect(shown([*list, *list], omitted: 40)).to eq ["@next", [98, nil], "@next"]
    expect(shown([*list.take(5), *list.take(4), step("@value")], omitted: 40))
      .to eq ["@next", [47, nil], "@next", "@value"]
    expect(shown([step("$a"), step("$b")], omitted: 40)).to eq ["$a", [40, nil], "$b"]
  end

  it "folds nothing that is asked for whole" do
    list = Array.new(60) { step("@next") }
    folded = described_class.of({ steps: list, omitted: 3 }, run: Float::INFINITY)
    expect(folded.size).to eq 61
  end
end
