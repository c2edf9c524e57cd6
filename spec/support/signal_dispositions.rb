# frozen_string_literal: true

# A process inherits ignored signals, as under nohup and in the background of a shell, but not handlers. The
# programs of the specs need Ruby's defaults; this process still ignores the signal.
%w[HUP INT QUIT].each do |signal|
  before = trap(signal, "DEFAULT")
  trap(signal, before == "IGNORE" ? proc {} : before)
end
