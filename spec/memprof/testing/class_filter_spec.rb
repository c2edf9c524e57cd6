# frozen_string_literal: true

require "memprof/testing"

RSpec.describe Memprof::Testing::ClassFilter do
  def key_for(class_name, *keys, **options)
    described_class.new(keys, **options).key_for(class_name)
  end

  it "includes subclasses of a class" do
    stub_const("Parent", Class.new)
    stub_const("Child", Class.new(Parent))
    stub_const("Grandchild", Class.new(Child))
    expect(key_for("Grandchild", Parent)).to eq(Parent)
    expect(key_for("Parent", Child)).to be_nil
    expect(key_for("Grandchild", Parent, exact: true)).to be_nil
  end

  it "includes the classes that include a module" do
    expect(key_for("Array", Enumerable)).to eq(Enumerable)
    expect(key_for("String", Enumerable)).to be_nil
  end

  it "gives an object to the nearest class, in whatever order they are named" do
    expect(key_for("Array", Object, Enumerable, Array)).to eq(Array)
    expect(key_for("Array", Array, Enumerable, Object)).to eq(Array)
    expect(key_for("Hash", Object, Enumerable, Array)).to eq(Enumerable)
    expect(key_for("String", Object, Enumerable, Array)).to eq(Object)
  end

  it "takes names, which are nearer than any class" do
    expect(key_for("Array", Array, "Array")).to eq("Array")
    expect(key_for("<iseq>", Object, "<iseq>")).to eq("<iseq>")
    expect(key_for("<iseq>", BasicObject)).to be_nil
  end

  it "knows classes without a name by number, also when they are gone" do
    marker = Module.new
    parent = Class.new(Array) { prepend marker }
    session = Memprof::Session.prepare(scope: :thread, identities: true)
    session.open
    [parent, Class.new(parent), Class.new(Array)].each(&:new)
    session.finish
    GC.compact if GC.respond_to?(:compact)
    numbers = session.counts.filter_map { |_, (*, name, number)| number if name == "#<Class < Array>" }.sort
    nearest = ->(*keys, **options) do
      numbers.map { |number| described_class.new(keys, **options).key_for("#<Class < Array>", number) }
    end
    expect(nearest.call(parent)).to eq([parent, parent, nil])
    expect(nearest.call(parent, exact: true)).to eq([parent, nil, nil])
    expect(nearest.call(Array, Object, Enumerable)).to eq([Array] * 3)
    expect(nearest.call(Array, parent)).to eq([parent, parent, Array])
    expect(nearest.call(parent, marker)).to eq([marker, marker, nil])
    expect(nearest.call(Array, "#<Class < Array>")).to eq(["#<Class < Array>"] * 3)
    expect(nearest.call(String)).to eq([nil] * 3)
  ensure
    session&.close
  end

  it "knows classes that lie about their name" do
    stub_const("Liar", Class.new { def self.name = raise("no") })
    Liar.define_singleton_method(:to_s) { "Truth" }
    expect(key_for("Liar", Liar)).to eq(Liar)
  end

  it "refuses what is no class" do
    expect { described_class.new([String, :array]) }.to raise_error(ArgumentError, ":array is not a class")
  end
end
