# frozen_string_literal: true

require "memprof/printable"

RSpec.describe Memprof::Printable do
  it "leaves UTF-8 alone" do
    text = "Größe"
    expect(described_class.utf8(text)).to equal text
  end

  it "writes bytes that are no text as escapes" do
    expect(described_class.utf8("a\xFF\xC3")).to eq "a\\xFF\\xC3"
  end

  it "reads bytes without an encoding as UTF-8 where they are" do
    expect(described_class.utf8("Gr\xC3\xB6\xFF".b)).to eq "Grö\\xFF"
  end

  it "converts other encodings, also broken ones" do
    expect(described_class.utf8("Größe".encode("UTF-16LE"))).to eq "Größe"
    expect(described_class.utf8("Größe".encode("ISO-8859-1"))).to eq "Größe"
    expect(described_class.utf8("\x00\xD8".dup.force_encoding("UTF-16LE"))).to be_valid_encoding
  end

  it "takes nil for nothing" do
    expect(described_class.utf8(nil)).to eq ""
  end

  it "keeps a line a line, and the terminal untouched" do
    expect(described_class.line("a\nb\r\t\e[31m\u202Ec\u2028\0")).to eq 'a\nb\r\t\e[31m\u202Ec\u2028\x00'
  end

  it "cuts long text in its middle" do
    expect(described_class.fit("ActionDispatch::Http::UploadedFile", 20)).to eq "ActionDi...oadedFile"
    expect(described_class.fit("String", 20)).to eq "String"
  end
end
