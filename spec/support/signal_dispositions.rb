# frozen_string_literal: true

# A process inherits that a signal is ignored, as under nohup and in the background of a shell, but not that
# it is handled. The programs of the specs need Ruby's own; this process still ignores the signal.
%w[HUP INT QUIT].each do |signal|
  before = trap(signal, "DEFAULT")
  trap(signal, before == "IGNORE" ? proc {} : before)
end
