# frozen_string_literal: true

require "rbconfig"

# Through `ruby -S`, so that the Ruby that runs rake runs the specs too, wherever its rspec comes from.
def rspec(*arguments, env: {})
  sh(env, RbConfig.ruby, "-S", "rspec", *arguments, *ENV.fetch("SPEC_OPTS", "").split)
end

desc "Run the specs (SPEC=path/to_spec.rb:12 for one, SPEC_OPTS for more)"
task(:spec) { rspec(*ENV.fetch("SPEC", "").split) }

desc "Run the specs tagged gc_stress with a garbage collection at every allocation"
task("spec:gc_stress") do
  rspec("--tag", "gc_stress", *ENV.fetch("SPEC", "").split, env: { "GC_STRESS" => "1" })
end

desc "Run the specs and accept what the commands print now as the new snapshots"
task("spec:snapshots") { rspec(*ENV.fetch("SPEC", "").split, env: { "UPDATE_SNAPSHOTS" => "1" }) }
