# frozen_string_literal: true

# A C extension that leaks: examples/leaky_markup forgets a block for each empty text. It is built in a
# temporary directory.
#
#   memprof malloc ruby examples/leak_extension.rb

require "open3"
require "rbconfig"
require "tmpdir"

def build(directory)
  source = File.join(__dir__, "leaky_markup")
  commands = [[RbConfig.ruby, File.join(source, "extconf.rb")], ["make"]]
  # The build is not what is looked at.
  plain = { "RUBYOPT" => nil, "MEMPROF_MALLOC" => nil }
  commands.each do |command|
    output, status = Open3.capture2e(plain, *command, chdir: directory)
    next if status.success?

    puts "This example needs a C compiler, make, and the headers of Ruby.", output.lines.last(3)
    exit
  end
  require File.join(directory, "markup")
rescue Errno::ENOENT => e
  puts "This example needs a C compiler and make: #{e.message}"
  exit
end

# Renders comments, as a forum does.
class Comment
  def initialize(text)
    @text = text
  end

  def html
    Markup.render(@text) # the leak
  end
end

Dir.mktmpdir do |directory|
  build(directory)
  sizes = 40_000.times.sum { |number| Comment.new(number % 4 == 0 ? "" : "comment #{number}").html.size }
  puts "rendered #{sizes} bytes"
end
