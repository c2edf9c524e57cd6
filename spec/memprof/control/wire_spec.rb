# frozen_string_literal: true

require "memprof/control/client"

RSpec.describe Memprof::Control::Wire do
  let(:sockets) { UNIXSocket.pair }
  let(:ours) { sockets[0] }
  let(:theirs) { sockets[1] }

  after { sockets.each(&:close) }

  def read(**options)
    described_class.read(ours, seconds: 1, limit: 1000, **options)
  end

  it "reads line by line, also if they come at once" do
    theirs.write("{\"a\":1}\n{\"b\":\"\u00e9\"}\n{\"c\"")
    ahead = String.new
    expect(Array.new(2) { read(ahead: ahead) }).to eq([{ "a" => 1 }, { "b" => "\u00e9" }])
    theirs.write(":3}\n")
    expect(read(ahead: ahead)).to eq("c" => 3)
    expect(ahead).to be_empty
  end

  it "knows the end from a line that is cut" do
    theirs.write("{\"a\"")
    theirs.close_write
    expect { read }.to raise_error(Memprof::Control::Broken, "the connection was closed")
    expect(read).to be_nil
  end

  it "keeps to the given deadline and length" do
    expect { described_class.read(ours, seconds: 0.01, limit: 1) }
      .to raise_error(Memprof::Control::Broken, "no answer within 0.01 s")
    theirs.write("x" * 2000)
    expect { read }.to raise_error(Memprof::Control::Broken, "a line is longer than 1000 bytes")
  end

  it "has the client see both answers, though they come at once" do
    client = Memprof::Control::Client.new(ours)
    theirs.write("{\"ok\":true,\"format\":\"x\"}\n{\"ok\":false,\"error\":\"disk full\"}\n")
    expect(client.ask({ do: "dump" })).to include("format" => "x")
    expect(client.wait(0)).to be(true)
    expect { client.answer }.to raise_error(Memprof::Control::Broken, "disk full")
  end
end
