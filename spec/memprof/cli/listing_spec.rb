# frozen_string_literal: true

require "memprof/cli"

RSpec.describe Memprof::CLI::Listing do
  let(:listing) do
    described_class.new
      .column("Class", :name, :class).column("Allocated at", :place, :site).column("Count", :count, :n)
      .row("注文", "app/注文.rb:1", 2).row("Order", "app/order.rb:12", 1000)
  end

  def columns(text)
    text.lines.map { |line| Memprof::ScreenWidth.of(line.chomp) }
  end

  it "aligns columns of wide characters" do
    expect(listing.to_text).to eq <<~TEXT
      Class  Allocated at     Count
      注文   app/注文.rb:1        2
      Order  app/order.rb:12  1,000
    TEXT
  end

  it "takes the values of columns from items" do
    orders = [{ name: "Order", lines: [1, 2] }, { name: "Cart", lines: [] }]
    listing = described_class.new.column("Class", :name, :class, from: :name)
      .column("Lines", :count, :lines) { |item| item[:lines].size }.column("Name", :name, :name).rows(orders)
    expect(listing.to_csv).to eq("class,lines,name\nOrder,2,Order\nCart,0,Cart\n")
    expect(described_class.new.columns(:name, :growth).rows([{ name: "=HYPERLINK(1)", growth: -2 }]).to_csv)
      .to eq(%(name,growth\n"'=HYPERLINK(1)",-2\n))
  end

  it "cuts wide characters by their columns" do
    wide = described_class.new.column("Class", :name, :class).column("Allocated at", :place, :site)
      .row("注文" * 30, "app/#{"顧客" * 30}.rb:1")
    (30..90).each do |width|
      expect(columns(wide.to_text(Memprof::Paint.new, width)).last).to be_between(width - 4, width)
    end
    expect(wide.to_text(Memprof::Paint.new, 60)).to match(/^注文.*\.\.\..*注文 +\.\.\..*顧客\.rb:1$/)
  end

  it "cuts the method of a place before its file and line" do
    places = described_class.new.column("Allocated at", :place, :site)
      .row("app/models/order.rb:12 in Order#total_with_taxes_and_discounts")
    shown = ->(width) { places.to_text(Memprof::Paint.new, width).lines.last.chomp }
    expect(shown.(70)).to eq("app/models/order.rb:12 in Order#total_with_taxes_and_discounts")
    expect(shown.(40)).to eq("app/models/order.rb:12")
    expect(shown.(18)).to eq(".../order.rb:12")
  end

  it "wraps sentences of wide characters on the screen" do
    page = Memprof::CLI::Page.new(width: 20).text("注文 #{"顧客" * 12} 注文")
    expect(columns(page.to(:text))).to eq([4, 20, 20, 8, 4])
  end
end
