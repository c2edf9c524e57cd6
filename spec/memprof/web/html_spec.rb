# frozen_string_literal: true

require "memprof/web/html"
require "memprof/web/template"

RSpec.describe Memprof::Web::Html do
  it "escapes what is not HTML already, once" do
    evil = %q(<script>alert("1")</script> & 'more')
    escaped = described_class.escape(evil)
    expect(escaped).to eq("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;more&#39;")
    expect(described_class.escape(escaped)).to be(escaped)
  end

  it "shows bytes that are no text, and characters that act where they are shown" do
    expect(described_class.escape("a\xFFb")).to eq("a\\xFFb")
    expect(described_class.escape("\e[31mred\u202Edlrow\0\tand\n"))
      .to eq("\\e[31mred\\u202Edlrow\\x00\tand\n")
  end

  it "is HTML only as long as nothing was added" do
    html = described_class.new("<b>")
    expect { html << "<i>" }.to raise_error(FrozenError)
    [html + "<i>", "#{html}<i>", html.sub("b", "i"), html * 2].each do |text|
      expect(described_class.escape(text)).to include("&lt;")
    end
  end

  it "makes elements whose attributes can't be left" do
    attributes = { href: %("><script>), title: nil, hidden: true, aria_label: described_class.new('"') }
    tag = described_class.tag(:a, "<x>", **attributes)
    expect(tag).to eq('<a href="&quot;&gt;&lt;script&gt;" hidden aria-label="&quot;">&lt;x&gt;</a>')
    expect(described_class.tag(:br)).to eq("<br>")
  end

  it "joins parts, each escaped" do
    expect(described_class.join(["<", nil, described_class.new("<b>")], "&")).to eq("&lt;&amp;<b>")
  end
end

RSpec.describe Memprof::Web::Template do
  def render(source)
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "page.erb"), source)
      stub_const("#{described_class}::DIRECTORY", directory)
      owner = Class.new { def value = %(<i title="x">) }
      owner.new.public_send(described_class.define(owner, "page"))
    end
  end

  it "escapes all that is put in" do
    expect(render("<b><%= value %></b>")).to eq("<b>&lt;i title=&quot;x&quot;&gt;</b>")
  end

  it "leaves HTML as it is, and says so of its own result" do
    page = render(<<~ERB)
      <%= Memprof::Web::Html.new('<br>') %>
      <% 2.times do |number| %>
      <p><%= number %>
      <% end %>
    ERB
    expect(page).to eq("<br><p>0\n<p>1\n")
    expect(page).to be_a(Memprof::Web::Html)
  end
end
