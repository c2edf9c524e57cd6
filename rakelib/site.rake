# frozen_string_literal: true

# Whether Python has the tools of rakelib/site/requirements.txt.
def site_tools?
  return true if system("python3", "-c", "import mkdocs, material", %i[out err] => File::NULL)

  warn("left out: the site needs MkDocs: pip install -r rakelib/site/requirements.txt")
end

desc "Build the site of docs/ in tmp/site; fails on a broken link, and on a page that no shelf has"
task "docs:site" do
  next unless site_tools?

  sh("python3", "-m", "mkdocs", "build", "--strict", "--config-file", "rakelib/site/mkdocs.yml")
  puts("tmp/site/index.html")
end
