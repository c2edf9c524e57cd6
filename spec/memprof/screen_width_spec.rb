# frozen_string_literal: true

require "memprof/screen_width"

RSpec.describe Memprof::ScreenWidth do
  it "counts columns, not characters" do
    { "" => 0, "Größe ß" => 7, "注文 x" => 6, "ﾃﾞｰﾀ" => 4, "データ" => 6, "한국어" => 6, "Ａ" => 2, "🎉" => 2,
      "❤️" => 2, "👨‍👩‍👧" => 2, "🇩🇪" => 2, "e\u0301" => 1, "\u0301" => 0, "→…—│" => 4 }.each do |text, columns|
      expect([text, described_class.of(text)]).to eq([text, columns])
    end
  end

  it "cuts where the columns end, never through a character" do
    expect(described_class.head("注文データ", 5)).to eq("注文")
    expect(described_class.tail("注文データ", 5)).to eq("ータ")
    expect(described_class.head("👨‍👩‍👧👨‍👩‍👧", 3)).to eq("👨‍👩‍👧")
    expect([described_class.head("Order", 2), described_class.tail("Order", 2)]).to eq(%w[Or er])
    expect([described_class.tail("Order", 9), described_class.head("注文", 0)]).to eq(["Order", ""])
  end

  it "fills up to columns" do
    expect(described_class.left("注文", 6)).to eq("注文  ")
    expect(described_class.right("注文", 6)).to eq("  注文")
    expect(described_class.left("注文", 3)).to eq("注文")
  end

  it "splits into lines that fit" do
    expect(described_class.split("注文データx", 5)).to eq(%w[注文 デー タx])
    expect(described_class.split("注文", 1)).to eq(%w[注 文])
    expect(described_class.split("", 5)).to eq([""])
  end
end
