# frozen_string_literal: true

require "memprof/paths"

RSpec.describe Memprof::Paths do
  # path => [gem, normalized, short]
  {
    "/usr/lib/ruby/gems/3.3.0/gems/rack-3.1.0/lib/rack/lint.rb" =>
      ["rack-3.1.0", "rack-3.1.0/lib/rack/lint.rb", "rack-3.1.0/lib/rack/lint.rb"],
    "/usr/lib/ruby/gems/3.3.0/bundler/gems/foo-abc123/lib/foo.rb" =>
      ["foo-abc123", "foo-abc123/lib/foo.rb", "foo-abc123/lib/foo.rb"],
    "/x/gems/outer-1.0/vendor/gems/inner-2.0/lib/inner.rb" =>
      ["inner-2.0", "inner-2.0/lib/inner.rb", "inner-2.0/lib/inner.rb"],
    "/x/gems/outer-1.0/lib/outer/gems/file.rb" =>
      ["outer-1.0", "outer-1.0/lib/outer/gems/file.rb", "outer-1.0/lib/outer/gems/file.rb"],
    "/usr/lib/ruby/vendor_ruby/rubygems/specification.rb" =>
      ["rubygems", "ruby/lib/rubygems/specification.rb", "ruby/lib/rubygems/specification.rb"],
    "/usr/lib/ruby/3.1.0/set.rb" => ["set", "ruby/lib/set.rb", "ruby/lib/set.rb"],
    "/usr/lib/ruby/3.1.0/json/common.rb:12" =>
      ["json", "ruby/lib/json/common.rb:12", "ruby/lib/json/common.rb:12"],
    "/usr/lib/ruby/vendor_ruby/rack/x.rb" => ["rack", "ruby/lib/rack/x.rb", "ruby/lib/rack/x.rb"],
    "/usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0/nio/bytebuffer.so" =>
      ["nio", "ruby/lib/nio/bytebuffer.so", "ruby/lib/nio/bytebuffer.so"],
    "/usr/local/lib/ruby/3.3.0/x86_64-linux/json/ext/parser.so" =>
      ["json", "ruby/lib/json/ext/parser.so", "ruby/lib/json/ext/parser.so"],
    "/srv/shop/app/models/user.rb" => ["shop/app", "shop/app/models/user.rb", "/srv/shop/app/models/user.rb"],
    "/srv/shop/library/x.rb" => ["other", "/srv/shop/library/x.rb", "/srv/shop/library/x.rb"],
    "<internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb>" =>
      ["ruby", "<internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb>",
        "<internal:rubygems/core_ext/kernel_require.rb>"],
    "<internal:kernel>" => ["ruby", "<internal:kernel>", "<internal:kernel>"],
    "script.rb" => ["other", "script.rb", "script.rb"],
    "(no name)" => ["other", "(no name)", "(no name)"],
    "/odd\n/gems/a-1/b\n.rb" => ["a-1", "a-1/b\n.rb", "a-1/b\n.rb"],
    "" => ["other", "", ""]
  }.each do |path, (gem, normalized, short)|
    it "knows #{path.inspect}" do
      expect(described_class.gem_of(path)).to eq gem
      expect(described_class.normalize(path)).to eq normalized
      expect(described_class.short(path, "/home/me")).to eq short
    end
  end

  it "writes paths relative to a directory" do
    expect(described_class.short("/home/me/app.rb", "/home/me")).to eq "app.rb"
    expect(described_class.short("/home/mean/app.rb", "/home/me")).to eq "/home/mean/app.rb"
    expect(described_class.short("/home/me/app.rb", nil)).to eq "/home/me/app.rb"
  end

  it "leaves out the line of code that has none" do
    expect(described_class.short("/home/me/app.rb:0", "/home/me")).to eq "app.rb"
    expect(described_class.short("/home/me/app.rb:0:in run", "/home/me")).to eq "app.rb:in run"
    expect(described_class.short("/home/me/app.rb:10", "/home/me")).to eq "app.rb:10"
    expect(described_class.short("(no name):0")).to eq "(unknown line)"
  end

  it "knows memprof's own files" do
    files = %w[memprof.rb memprof/session.rb memprofessional.rb]
    expect(files.map { |file| described_class.own?(File.join(ChildRuby::LIB, file)) })
      .to eq [true, true, false]
  end

  it "compares paths beyond ASCII in a locale that has none" do
    Dir.mktmpdir do |directory|
      Dir.mkdir(File.join(directory, "é"))
      code = <<~'RUBY'
        require "memprof/paths"
        print Memprof::Paths.short("#{Dir.pwd.force_encoding("UTF-8")}/\u00FC.rb")
      RUBY
      result = run_ruby(code, env: { "LC_ALL" => "C" }, chdir: File.join(directory, "é"))
      expect([result.stdout, result.stderr]).to eq ["ü.rb", ""]
    end
  end

  it "is at home in the working directory, unless that is gone" do
    expect(described_class.working_directory).to eq Dir.pwd
    allow(Dir).to receive(:pwd).and_raise(Errno::ENOENT)
    expect(described_class.working_directory).to be_nil
  end
end
